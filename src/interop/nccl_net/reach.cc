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

Duration Reach::round_trip() const {
  const std::lock_guard lock(mutex_);
  return store_ == nullptr ? Duration(0) : store_->round_trip();
}

}  // namespace leeway::nccl_net
