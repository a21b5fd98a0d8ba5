// A connection that is being made: polled, as NCCL polls connect and accept.
#pragma once

#include <memory>
#include <string>

#include "interop/nccl/place.h"
#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"
#include "interop/nccl_net/connection.h"
#include "interop/nccl_net/reach.h"
#include "leeway/communicator.h"

namespace leeway::nccl_net {

class Connecting {
 public:
  // The receiver, who listens: `store` is its own process's.
  static Result<std::unique_ptr<Connecting>> accept(const nccl::UniqueId& id,
                                                    const nccl::Settings& settings,
                                                    std::shared_ptr<Rendezvous> store);
  // The sender. The listener's process must answer within half a minute.
  static Result<std::unique_ptr<Connecting>> connect(const nccl::UniqueId& id,
                                                     const nccl::Settings& settings);
  // Takes it back: within two tenths of a second where the rendezvous answers.
  ~Connecting() = default;
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  // Null as long as it does not stand. Stands when the peer has it too. Not to be called again
  // after an error, or after it stood.
  Result<std::unique_ptr<Connection>> poll();

 private:
  Connecting(const nccl::UniqueId& id, const nccl::Settings& settings, const char* verb);
  Status begin(const nccl::UniqueId& id, const nccl::Settings& settings, int rank,
               std::shared_ptr<Rendezvous> store);

  const std::string label_;
  const Duration deadline_;  // of messages
  const std::chrono::steady_clock::time_point reached_by_;
  Duration join_timeout_{0};
  std::shared_ptr<Reach> reach_;        // of the sender
  std::shared_ptr<nccl::Place> place_;  // until the peer has met too
  PendingCommunicator pending_;
  std::unique_ptr<Communicator> communicator_;
  Work met_;  // a barrier: the peer has made its communicator as well
};

}  // namespace leeway::nccl_net
