// The store of another process's listener, which a handle names. The store's first use finds out
// which of the handle's addresses answers. That happens on the thread that joins: NCCL's must not
// block.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "interop/nccl/unique_id.h"
#include "leeway/rendezvous.h"

namespace leeway::nccl_net {

class Reach final : public Rendezvous {
 public:
  explicit Reach(nccl::UniqueId id) : id_(std::move(id)) {}

  // Returns true once the listener's process has answered.
  bool reached() const { return reached_.load(std::memory_order_relaxed); }

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;
  Duration round_trip() const override;

 private:
  Result<std::shared_ptr<Rendezvous>> store();

  const nccl::UniqueId id_;
  std::atomic<bool> reached_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<Rendezvous> store_;
};

}  // namespace leeway::nccl_net
