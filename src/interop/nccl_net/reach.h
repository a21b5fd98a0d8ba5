// The store of another process's listener, which a handle names. The store's first use finds out
// which of the handle's addresses answers. The thread that joins does this, because NCCL's threads
// must not block.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "interop/nccl/forwarding_rendezvous.h"
#include "interop/nccl/unique_id.h"

namespace leeway::nccl_net {

class Reach final : public nccl::ForwardingRendezvous {
 public:
  explicit Reach(nccl::UniqueId id) : id_(std::move(id)) {}

  // Returns true once the listener's process has answered.
  bool reached() const { return reached_.load(std::memory_order_relaxed); }

  Duration round_trip() const override;

 private:
  Result<std::shared_ptr<Rendezvous>> store() override;

  const nccl::UniqueId id_;
  std::atomic<bool> reached_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<Rendezvous> store_;
};

}  // namespace leeway::nccl_net
