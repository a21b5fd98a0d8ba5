#include "interop/nccl/place.h"

#include <utility>

namespace leeway::nccl {
namespace {

Status closed() {
  return Status::error(StatusCode::kUnavailable, "the group of this unique id has met already");
}

}  // namespace

std::shared_ptr<Rendezvous> Place::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

void Place::leave() {
  std::shared_ptr<Rendezvous> store;
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    store = std::exchange(store_, nullptr);
    left = std::exchange(left_, nullptr);
  }
  if (left) left();
}

Status Place::put(std::string_view key, ByteSpan value) {
  const auto store = this->store();
  return store != nullptr ? store->put(key, value) : closed();
}

Result<std::vector<std::byte>> Place::get(std::string_view key, Duration patience) {
  const auto store = this->store();
  if (store == nullptr) return closed();
  return store->get(key, patience);
}

Status Place::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  const auto store = this->store();
  return store != nullptr ? store->put_briefly(key, value, lifetime) : closed();
}

Status Place::erase(std::string_view key) {
  const auto store = this->store();
  return store != nullptr ? store->erase(key) : closed();
}

Status Place::get_each(std::span<const std::string> keys, Duration patience, const Taker& take) {
  const auto store = this->store();
  return store != nullptr ? store->get_each(keys, patience, take) : closed();
}

Duration Place::round_trip() const {
  const auto store = this->store();
  return store != nullptr ? store->round_trip() : Duration(0);
}

}  // namespace leeway::nccl
