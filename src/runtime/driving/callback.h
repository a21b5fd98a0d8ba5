// Callbacks of operations. All callers make callbacks by call(), so that a blocking call in a
// callback is refused on every thread and every time.
#pragma once

#include <functional>
#include <span>

namespace leeway::internal {

using Callback = std::function<void()>;

}  // namespace leeway::internal

namespace leeway::driving {

// Returns true if this thread is in a callback. It must not wait then.
bool in_callback();

// Makes the callbacks in their order.
void call(std::span<const internal::Callback> callbacks);

}  // namespace leeway::driving
