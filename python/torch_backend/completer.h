// Threads of the process that run what follows the end of a call: users' continuations, copies
// back, releases of tensors. The thread that drives the library does none of that.
#pragma once

#include <functional>

namespace leeway::torch_backend {

// Queues it. From any thread; never blocks for long.
//
// A task may wait for what a later task brings about: a continuation that begins a second call and
// waits for its future, as torch's PowerSGD hook does. So a task never waits for the end of
// another. Where all threads are busy one more begins, and ends when there are too many again.
// After a fork new threads begin at the next call.
void run_later(std::function<void()> task);

}  // namespace leeway::torch_backend
