#include "leeway/late_work.h"

#include <algorithm>

#include "schedule/shard_map.h"

namespace leeway {

LateWork::LateWork(std::size_t count) : kept_(count) {}

Status LateWork::add_to(std::span<float> gradient, CollectiveOptions& options) {
  if (gradient.size() != kept_.size()) {
    return Status::error(StatusCode::kInvalidArgument, "LateWork: %zu gradients, made for %zu",
                         gradient.size(), kept_.size());
  }
  if (options.op != ReduceOp::avg) {
    return Status::error(StatusCode::kInvalidArgument, "LateWork: op %s has no weights; use avg",
                         to_string(options.op).data());
  }
  if (!options.owner_weights.empty() && options.owner_weights.data() != owner_weights_.data()) {
    return Status::error(StatusCode::kInvalidArgument, "LateWork: owner_weights are set already");
  }
  options.confirm_use = true;
  options.owner_weights = {};
  const bool fresh_has_units = options.weight > 0.0;
  const bool any_late =
      kept_weight_ > 0.0 && std::find(late_.begin(), late_.end(), true) != late_.end();
  carried_to_.assign(late_.size(), false);
  if (!any_late) {
    std::copy(gradient.begin(), gradient.end(), kept_.begin());
  } else {
    owner_weights_.assign(late_.size(), options.weight);
    for (Rank owner = 0; owner < late_.size(); ++owner) carry(gradient, owner, fresh_has_units);
    options.owner_weights = owner_weights_;
  }
  kept_weight_ = options.weight;
  std::fill(late_.begin(), late_.end(), false);
  return Status();
}

// Keeps the fresh gradient of one owner's shard for the next call. If the owner missed the gradient
// that was kept before, `gradient` becomes the sum of the fresh and the kept one. Without fresh
// units of work the fresh gradient counts as zero in this sum, whatever the buffer holds.
void LateWork::carry(std::span<float> gradient, Rank owner, bool fresh_has_units) {
  const schedule::Shard shard =
      schedule::ShardMap::even(kept_.size(), static_cast<int>(late_.size()))[owner];
  const auto fresh = gradient.subspan(shard.offset, shard.count);
  const auto kept = std::span(kept_).subspan(shard.offset, shard.count);
  if (!late_[owner]) {
    std::copy(fresh.begin(), fresh.end(), kept.begin());
    return;
  }
  for (std::size_t i = 0; i < shard.count; ++i) {
    const float both = fresh_has_units ? fresh[i] + kept[i] : kept[i];
    kept[i] = fresh[i];
    fresh[i] = both;
  }
  owner_weights_[owner] += kept_weight_;
  carried_to_[owner] = true;
  ++statistics_.carried;
  statistics_.elements_carried += shard.count;
  statistics_.weight_carried += kept_weight_;
}

void LateWork::keep(const CollectiveReport& report) {
  late_.assign(report.peers.size() + 1, false);
  carried_to_.resize(late_.size(), false);
  const bool owners_stay = report.owners >= late_.size();
  for (const PeerReport& peer : report.peers) {
    if (!peer.missed) continue;
    late_[peer.rank] = owners_stay;
    ++statistics_.missed;
    statistics_.dropped += carried_to_[peer.rank] || !owners_stay;
  }
}

}  // namespace leeway
