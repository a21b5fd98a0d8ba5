// A connection that is being made. It is polled, as NCCL polls connect and accept.
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
  // Begins as the receiver, which listens. `store` is the store in this process by which both meet.
  static Result<std::unique_ptr<Connecting>> accept(const nccl::UniqueId& id,
                                                    const nccl::Settings& settings,
                                                    std::shared_ptr<Rendezvous> store);
  // Begins as the sender. poll() fails unless the listener's process answers within 30 s.
  static Result<std::unique_ptr<Connecting>> connect(const nccl::UniqueId& id,
                                                     const nccl::Settings& settings);
  // Gives up a join in progress, which takes up to 200 ms if the rendezvous answers.
  ~Connecting() = default;
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  // Returns null until both peers have the connection. Must not be called again after it returned
  // an error or a connection.
  Result<std::unique_ptr<Connection>> poll();

 private:
  Connecting(const nccl::UniqueId& id, const nccl::Settings& settings, const char* verb);
  Status begin(const nccl::UniqueId& id, const nccl::Settings& settings, int rank,
               std::shared_ptr<Rendezvous> store);

  const std::string label_;
  const Duration deadline_;  // deadline of each message
  const std::chrono::steady_clock::time_point reached_by_;
  Duration join_timeout_{0};
  std::shared_ptr<Reach> reach_;        // sender only: store of the listener
  std::shared_ptr<nccl::Place> place_;  // kept until the peer has met, too
  PendingCommunicator pending_;
  std::unique_ptr<Communicator> communicator_;
  Work met_;  // a barrier: the peer has made its communicator as well
};

}  // namespace leeway::nccl_net
