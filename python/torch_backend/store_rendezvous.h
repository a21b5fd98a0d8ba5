// A c10d::Store as a rendezvous, where ranks meet.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "leeway/rendezvous.h"

namespace leeway::torch_backend {

class StoreRendezvous final : public Rendezvous {
 public:
  // Shares the store's connection with its other users.
  explicit StoreRendezvous(const c10::intrusive_ptr<c10d::Store>& store);

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status erase(std::string_view key) override;

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace leeway::torch_backend
