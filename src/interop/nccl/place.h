// The store in which one group meets, as long as it meets. A communicator keeps its options, and
// with them the store: this one lets go of sockets and listeners once they are not needed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "leeway/rendezvous.h"

namespace leeway::nccl {

class Place final : public Rendezvous {
 public:
  // `address`: by which this process reaches it. `left` is called once, by leave().
  Place(std::shared_ptr<Rendezvous> store, std::string address, std::function<void()> left)
      : address_(std::move(address)), store_(std::move(store)), left_(std::move(left)) {}

  const std::string& address() const { return address_; }
  // The group has met.
  void leave();

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;
  Duration round_trip() const override;

 private:
  std::shared_ptr<Rendezvous> store() const;

  const std::string address_;
  mutable std::mutex mutex_;
  std::shared_ptr<Rendezvous> store_;
  std::function<void()> left_;
};

}  // namespace leeway::nccl
