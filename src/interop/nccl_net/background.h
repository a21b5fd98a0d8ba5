// Work that may take a while and that nobody waits for: destroying communicators that leave, and
// joins that were given up. Each piece of work has a thread of its own, so that none waits for the
// dead peer of another one.
#pragma once

#include <chrono>
#include <memory>

namespace leeway {
inline namespace v0 {
class Communicator;
}  // namespace v0
}  // namespace leeway

namespace leeway::nccl_net {

class Connecting;

// Each object is destroyed on a thread of its own. When the process exits, all of them together
// have 200 ms.
void leave_in_background(std::unique_ptr<Communicator> communicator);
void drop_in_background(std::unique_ptr<Connecting> connecting);

// Waits until all objects of the functions above are destroyed, at most until `until`.
void wait_for_background(std::chrono::steady_clock::time_point until);

}  // namespace leeway::nccl_net
