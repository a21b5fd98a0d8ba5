#include "interop/nccl/place.h"

#include <utility>

namespace leeway::nccl {

Result<std::shared_ptr<Rendezvous>> Place::store() {
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr) return store_;
  return Status::error(StatusCode::kUnavailable, "the group of this unique id has met already");
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

Duration Place::round_trip() const {
  const std::lock_guard lock(mutex_);
  return store_ == nullptr ? Duration(0) : store_->round_trip();
}

}  // namespace leeway::nccl
