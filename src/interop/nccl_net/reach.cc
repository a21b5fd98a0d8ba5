#include "interop/nccl_net/reach.h"

#include "interop/nccl/reachable.h"

namespace leeway::nccl_net {

Result<std::shared_ptr<Rendezvous>> Reach::store() {
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr) return store_;
  const auto place = nccl::find_reachable(id_.places());
  if (!place) {
    return Status::error(StatusCode::kUnavailable, "nobody answers at %s",
                         id_.places().front().c_str());
  }
  TcpRendezvous::Security security;
  security.secret = id_.secret_text();
  auto client = TcpRendezvous::connect(*place, security);
  if (!client.ok()) return client.status();
  reached_ = true;
  return store_ = std::move(*client);
}

Status Reach::put(std::string_view key, ByteSpan value) {
  const auto store = this->store();
  return store.ok() ? (*store)->put(key, value) : store.status();
}

Result<std::vector<std::byte>> Reach::get(std::string_view key, Duration patience) {
  const auto store = this->store();
  if (!store.ok()) return store.status();
  return (*store)->get(key, patience);
}

Status Reach::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  const auto store = this->store();
  return store.ok() ? (*store)->put_briefly(key, value, lifetime) : store.status();
}

Status Reach::erase(std::string_view key) {
  const auto store = this->store();
  return store.ok() ? (*store)->erase(key) : store.status();
}

Status Reach::get_each(std::span<const std::string> keys, Duration patience, const Taker& take) {
  const auto store = this->store();
  return store.ok() ? (*store)->get_each(keys, patience, take) : store.status();
}

Duration Reach::round_trip() const {
  const std::lock_guard lock(mutex_);
  return store_ == nullptr ? Duration(0) : store_->round_trip();
}

}  // namespace leeway::nccl_net
