#include "endpoint/abstract_shard.h"

#include <algorithm>
#include <bit>

#include "base/contracts.h"

namespace leeway::sim {

void AbstractShard::begin(const AbstractPlan& plan, std::uint32_t self, std::uint32_t start) {
  plan_ = &plan;
  start_ = start;
  released_ = 0;
  spread_order_.clear();
  const AbstractHalf& reduce = plan.halves[kReduceHalf];
  const AbstractHalf& spread = plan.halves[kSpreadHalf];
  spread_grid_ = spread.active ? spread.grids[self] : schedule::PacketGrid();
  grid_ = reduce.active ? reduce.grids[self] : schedule::PacketGrid();
  packets_ = grid_.packets();
  chunk_shift_ = std::countr_zero(grid_.chunk_packets());
  sums_passed_ = plan.sums_passed && grid_.chunks() > 2;
  contributors_.assign(packets_, 0);
  chunk_left_.resize(grid_.chunks());
  for (std::uint32_t c = 0; c < grid_.chunks(); ++c) chunk_left_[c] = grid_.chunk_size(c);
  chunk_passed_.assign(sums_passed_ ? grid_.chunks() : 0, 0);
  senders_passed_.assign(sums_passed_ ? grid_.chunks() : 0, 0);
  chunks_settled_ = 0;
  short_place_ = UINT32_MAX;
  if (!spread.active) return;
  if (!spread.streaming) {
    for (std::uint32_t c = 0; c < spread_grid_.chunks(); ++c) release_spread_chunk(c);
    return;
  }
  const std::size_t span = std::size_t{grid_.chunk_packets()} * grid_.elements_per_packet();
  const std::size_t own =
      std::size_t{spread_grid_.chunk_packets()} * spread_grid_.elements_per_packet();
  spread_waits_.resize(spread_grid_.chunks());
  for (std::size_t c = 0; c < spread_waits_.size(); ++c) {
    const std::size_t end = std::min((c + 1) * own, spread_grid_.elements());
    spread_waits_[c] = static_cast<std::uint32_t>((end - 1) / span - c * own / span + 1);
  }
}

bool AbstractShard::accept(std::uint32_t index, bool first_pass, std::uint16_t& sender_passed) {
  const std::uint32_t before = released_;
  const bool all_there = ++contributors_[index] + 1u == plan_->ranks;
  if (all_there && plan_->sums_early) {
    const std::uint32_t chunk = index >> chunk_shift_;
    if (--chunk_left_[chunk] == 0) chunk_summed(chunk);
  }
  if (sums_passed_ && first_pass) {
    const std::uint32_t position = index >= start_ ? index - start_ : index + packets_ - start_;
    note_progress(position, sender_passed);
  }
  return released_ != before;
}

bool AbstractShard::settle() {
  const std::uint32_t before = released_;
  for (std::uint32_t c = 0; c < chunk_left_.size(); ++c) {
    if (chunk_left_[c] == 0) continue;
    chunk_left_[c] = 0;
    chunk_summed(c);
  }
  return released_ != before;
}

// Chunks in the senders' common order; the one they start in is split and counts as last. A chunk's
// worth of packets is left for those that were overtaken.
std::uint32_t AbstractShard::chunks_passed(std::uint32_t position) const {
  const std::uint32_t first = grid_.chunk_of(start_);
  const std::uint32_t first_part = grid_.chunk_begin(first) + grid_.chunk_size(first) - start_;
  if (position < first_part + grid_.chunk_packets()) return 0;
  const std::uint32_t at = (start_ + position - grid_.chunk_packets()) % packets_;
  return (grid_.chunk_of(at) + grid_.chunks() - first - 1) % grid_.chunks();
}

void AbstractShard::note_progress(std::uint32_t position, std::uint16_t& sender_passed) {
  const std::uint32_t passed = chunks_passed(position);
  if (passed <= sender_passed) return;
  for (std::uint32_t n = sender_passed; n < passed; ++n) ++senders_passed_[n];
  sender_passed = static_cast<std::uint16_t>(passed);
  while (chunks_settled_ < senders_passed_.size() &&
         senders_passed_[chunks_settled_] + 1u == plan_->ranks) {
    const std::uint32_t chunk = (grid_.chunk_of(start_) + 1 + chunks_settled_++) % grid_.chunks();
    if (chunk_left_[chunk] == 0) continue;
    chunk_left_[chunk] = 0;
    chunk_passed_[chunk] = 1;
    chunk_summed(chunk);
  }
}

void AbstractShard::chunk_summed(std::uint32_t chunk) {
  if (spread_grid_.elements() == 0) return;
  const std::size_t span = std::size_t{grid_.chunk_packets()} * grid_.elements_per_packet();
  const std::size_t own =
      std::size_t{spread_grid_.chunk_packets()} * spread_grid_.elements_per_packet();
  const std::size_t begin = chunk * span;
  const std::size_t end = std::min(begin + span, spread_grid_.elements());
  for (std::size_t c = begin / own; c <= (end - 1) / own; ++c) {
    if (--spread_waits_[c] == 0) release_spread_chunk(static_cast<std::uint32_t>(c));
  }
}

void AbstractShard::release_spread_chunk(std::uint32_t chunk) {
  const std::uint32_t size = spread_grid_.chunk_size(chunk);
  if (size < spread_grid_.chunk_packets())
    short_place_ = static_cast<std::uint32_t>(spread_order_.size());
  spread_order_.push_back(chunk);
  released_ += size;
}

std::uint32_t AbstractShard::spread_index(std::uint32_t position) const {
  const std::uint32_t whole = spread_grid_.chunk_packets();
  std::uint32_t place = position / whole;
  std::uint32_t at = position % whole;
  if (place >= short_place_) {
    const std::uint32_t size = spread_grid_.chunk_size(spread_order_[short_place_]);
    const std::uint32_t behind = position - short_place_ * whole;
    place = short_place_;
    at = behind;
    if (behind >= size) {
      place += 1 + (behind - size) / whole;
      at = (behind - size) % whole;
    }
  }
  return spread_grid_.chunk_begin(spread_order_[place]) + at;
}

double AbstractShard::contributors_mean() const {
  if (packets_ == 0) return plan_->ranks;
  std::uint64_t sum = packets_;  // our own contribution
  for (const std::uint16_t count : contributors_) sum += count;
  return static_cast<double>(sum) / packets_;
}

std::uint32_t AbstractShard::contributors_min() const {
  if (packets_ == 0) return plan_->ranks;
  return 1u + *std::min_element(contributors_.begin(), contributors_.end());
}

}  // namespace leeway::sim
