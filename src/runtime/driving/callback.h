// Makes the callbacks of operations. All of Leeway makes them by call(), which marks the thread as
// in a callback. So a blocking call in a callback is refused on every thread and every time.
#pragma once

#include <functional>
#include <span>

namespace leeway::internal {

using Callback = std::function<void()>;

}  // namespace leeway::internal

namespace leeway::driving {

// Returns true if the calling thread is in a callback. A thread in a callback must not wait.
bool in_callback();

// Makes the callbacks in their order.
void call(std::span<const internal::Callback> callbacks);

}  // namespace leeway::driving
