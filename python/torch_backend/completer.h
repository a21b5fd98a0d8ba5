// Threads of the process for work that follows the end of a call: users' continuations, copies
// back, releases of tensors. The thread that drives the library does none of that.
#pragma once

#include <functional>

namespace leeway::torch_backend {

// Queues a task. May be called from any thread; never blocks for long.
//
// A task may wait for the result of a later task. For example, a continuation begins a second call
// and waits for its future, as torch's PowerSGD hook does. So no task waits in the queue for the
// end of another task. If all threads are busy, one more is started. A thread ends when its task is
// done and two others are idle. After a fork new threads start at the next call.
void run_later(std::function<void()> task);

}  // namespace leeway::torch_backend
