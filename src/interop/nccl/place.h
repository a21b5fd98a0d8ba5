// The store by which one group meets. A communicator keeps its options, and the store with them. So
// this wrapper lets go of the store, with its sockets and listeners, when the group has met. Later
// calls of the wrapper return kUnavailable.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "interop/nccl/forwarding_rendezvous.h"

namespace leeway::nccl {

class Place final : public ForwardingRendezvous {
 public:
  // `address`: where this process reaches the store. leave() calls `left` once, unless it is empty.
  Place(std::shared_ptr<Rendezvous> store, std::string address, std::function<void()> left)
      : address_(std::move(address)), store_(std::move(store)), left_(std::move(left)) {}

  const std::string& address() const { return address_; }
  // Lets go of the store: the group has met.
  void leave();

  Duration round_trip() const override;

 private:
  Result<std::shared_ptr<Rendezvous>> store() override;

  const std::string address_;
  mutable std::mutex mutex_;
  std::shared_ptr<Rendezvous> store_;
  std::function<void()> left_;
};

}  // namespace leeway::nccl
