// One thread of the process that runs what follows the end of a call: users' continuations, copies
// back, releases of tensors. The thread that drives the library does none of that.
#pragma once

#include <functional>

namespace leeway::torch_backend {

// Queues it. From any thread; never blocks for long. After a fork a new thread begins at the next
// call.
void run_later(std::function<void()> task);

}  // namespace leeway::torch_backend
