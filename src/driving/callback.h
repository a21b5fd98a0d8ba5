// Callbacks of operations. Whoever makes one makes it here, so that a blocking call in it is
// refused on every thread and every time.
#pragma once

#include <functional>
#include <span>

namespace leeway::internal {

using Callback = std::function<void()>;

}  // namespace leeway::internal

namespace leeway::driving {

// Whether this thread is in a callback: it must not wait for anybody.
bool in_callback();

// Makes them in their order.
void call(std::span<const internal::Callback> callbacks);

}  // namespace leeway::driving
