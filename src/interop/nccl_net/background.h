// What may take a while and nobody waits for: communicators that leave, and joining that was given
// up. Each has a thread of its own, so that none waits for another's dead peer.
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

// They are destroyed on a thread of their own. At the end of the process all together have 200 ms.
void leave_in_background(std::unique_ptr<Communicator> communicator);
void drop_in_background(std::unique_ptr<Connecting> connecting);

// Until all of it is done, or until then.
void wait_for_background(std::chrono::steady_clock::time_point until);

}  // namespace leeway::nccl_net
