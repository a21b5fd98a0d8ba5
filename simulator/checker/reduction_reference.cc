#include "checker/reduction_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace leeway::sim {
namespace {

using wire::FlowKind;

// At most this many senders of a packet are tried out as summed or not summed, which makes 2^6
// sums.
constexpr std::size_t kOpenMax = 6;

// Largest difference that rounding can explain, relative to the largest number of the packet.
constexpr float kFar = 1e-3f;

// Stands for a delivery rate that the checker can no longer know.
constexpr double kUntold = std::numeric_limits<double>::quiet_NaN();

void add_native(std::span<const float> values, float scale, bool first, std::span<float> sum) {
  if (first) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = scale * values[i];
  } else {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + scale * values[i];
  }
}

float largest(std::span<const float> values) {
  float most = 0.0f;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

ReductionReference::ReductionReference(int size, std::uint64_t seed)
    : size_(size),
      seed_(seed),
      histories_(size, estimate::LinkHistory(size)),
      senders_(size),
      tallies_(size),
      complete_scales_(size),
      scales_(size),
      mask_((size + 63) / 64) {}

void ReductionReference::take_senders(const CallLedger& call, Rank rank,
                                      const CollectiveReport& report) {
  for (Sender& sender : senders_) sender = {};
  for (const PeerReport& row : report.peers) {
    const FlowLedger& reduce = call.ranks[rank].flow(FlowKind::reduce, row.rank);
    const FlowLedger& spread = call.ranks[rank].flow(FlowKind::spread, row.rank);
    Sender& sender = senders_[row.rank];
    sender.arrived = reduce.distinct;
    const bool fewer = row.arrived < std::uint64_t{reduce.distinct} + spread.distinct;
    sender.unsure = fewer && reduce.unsure > 0;
    sender.counted = !sender.unsure || spread.unsure == 0 || report.elements_missing == 0;
    // If a half settles as a whole, the packets that came last are those that the engine calls
    // late.
    if (sender.unsure && sender.counted && row.arrived >= spread.distinct)
      sender.arrived = static_cast<std::uint32_t>(row.arrived - spread.distinct);
  }
}

// Returns the weight that the flow's packets state. All of these packets may be late for the
// engine. If the engine used some nevertheless, the weight is the one that such a packet stated.
float ReductionReference::weight_of(const FlowLedger& flow, Rank from) const {
  const bool by_late = flow.weight != flow.weight && senders_[from].arrived > 0;
  return by_late ? flow.late_weight : flow.weight;
}

// Returns true if the engine may not know the sender's weight: every packet that states it may be
// late, and it is not known that the engine used one.
bool ReductionReference::is_weight_open(const FlowLedger& flow, Rank from) const {
  return flow.weight != flow.weight && flow.late_weight == flow.late_weight &&
         (senders_[from].arrived == 0 || !senders_[from].counted);
}

// Computes the scales. Returns false if the counts behind them cannot be known from outside.
bool ReductionReference::plan_scales(const CallLedger& call, Rank rank) {
  const RankLedger& side = call.ranks[rank];
  const std::uint32_t packets = call.plan.reduce_to(rank).grid.packets();
  const estimate::LinkHistory& history = histories_[rank];
  bool known = true;
  bool weights_known = true;
  all_complete_ = true;
  for (Rank from = 0; from < size_; ++from) {
    const bool own = from == rank;
    estimate::LinkTally& tally = tallies_[from];
    const bool estimated = call.plan.estimated_rates() && !own;
    tally.prior_rate = estimated ? history.delivery_rate(from) : 1.0;
    tally.heard_rate = estimated ? history.heard_rate(from, packets) : 1.0;
    tally.sent = std::max<std::uint32_t>(packets, 1);
    tally.arrived = own ? tally.sent : senders_[from].arrived;
    tally.weight = own ? side.weight_for(rank) : weight_of(side.flow(FlowKind::reduce, from), from);
    all_complete_ &= own || senders_[from].arrived == packets;
    const bool told = !std::isnan(tally.prior_rate) && !std::isnan(tally.heard_rate);
    known &= senders_[from].counted && told;
    if (!told) tally.prior_rate = tally.heard_rate = 1.0;
    weights_known &= own || !is_weight_open(side.flow(FlowKind::reduce, from), from);
  }
  uncounted_.assign(std::size_t{packets} * size_, false);
  if (known && call.plan.finite_only() && !call.plan.packet_scales())
    uncount_non_finite(call, rank);
  scale_plan_ = estimate::ScalePlan({.estimator = call.plan.estimator(),
                                     .op = call.plan.op(),
                                     .links = tallies_,
                                     .owner = rank,
                                     .external_control = !side.control.empty(),
                                     .seed = seed_,
                                     .step = call.number});
  all_complete_ &= call.plan.packet_scales() || !scale_plan_.estimated_rates();
  complete_block_ = scale_plan_.complete_scales(complete_scales_);
  return weights_known && (known || call.plan.packet_scales());
}

// Takes contributions that are not finite out of the counts that scales depend on.
void ReductionReference::uncount_non_finite(const CallLedger& call, Rank rank) {
  for (std::uint32_t index = 0; index < uncounted_.size() / size_; ++index) {
    for (Rank from = 0; from < size_; ++from) {
      if (call.plan.op() == ReduceOp::avg && tallies_[from].weight == 0.0) continue;
      if (!is_certain(call, rank, from, index) || is_finite(call, rank, from, index)) continue;
      uncounted_[index * size_ + from] = true;
      --tallies_[from].arrived;
      all_complete_ = false;
    }
  }
}

bool ReductionReference::is_possible(const CallLedger& call, Rank rank, Rank from,
                                     std::uint32_t index) const {
  return from == rank || call.ranks[rank].flow(FlowKind::reduce, from).seen.test(index);
}

bool ReductionReference::is_certain(const CallLedger& call, Rank rank, Rank from,
                                    std::uint32_t index) const {
  if (from == rank) return true;
  const FlowLedger& flow = call.ranks[rank].flow(FlowKind::reduce, from);
  if (!flow.seen.test(index)) return false;
  if (!senders_[from].unsure) return true;
  if (call.plan.packet_scales()) return !flow.maybe_late.test(index);
  return std::any_of(flow.order.begin(), flow.order.begin() + senders_[from].arrived,
                     [&](const FlowLedger::Distinct& packet) { return packet.index == index; });
}

// Computes the packet's sum from the contributions that certainly count, and from those senders of
// `open_` whose bit is set in `choice`.
void ReductionReference::reduce(const CallLedger& call, Rank rank, std::uint32_t index,
                                std::uint64_t choice) {
  std::fill(mask_.begin(), mask_.end(), 0);
  left_out_ = 0;
  int contributors = 0;
  for (Rank from = 0; from < size_; ++from) {
    const auto at = std::find(open_.begin(), open_.end(), from);
    if (uncounted_[index * size_ + from]) {
      ++left_out_;
      continue;
    }
    const bool here = at == open_.end() ? is_certain(call, rank, from, index)
                                        : (choice >> (at - open_.begin()) & 1) != 0;
    mask_[from / 64] |= std::uint64_t{here} << (from % 64);
    contributors += here;
  }
  const bool complete =
      call.plan.exact() || (call.plan.packet_scales() ? contributors == size_ : all_complete_);
  if (complete) {
    scales_ = complete_scales_;
    block_ = complete_block_;
  } else {
    block_ = scale_plan_.scales(mask_, index, scales_);
  }
  while (call.plan.finite_only() && leave_out_non_finite(call, rank, index))
    block_ = scale_plan_.scales(mask_, index, scales_);
  sum(call, rank, index);
}

// Returns true if all values of the contribution, as its receiver decodes them, are finite.
bool ReductionReference::is_finite(const CallLedger& call, Rank rank, Rank from,
                                   std::uint32_t index) {
  const FlowPlan plan = call.plan.reduce_to(rank);
  const codec::Format& format = call.plan.reduce_format();
  const std::size_t elements = plan.grid.packet_elements({index});
  std::span<const float> values;
  if (from == rank || format.identity()) {
    values = std::span(call.ranks[from].source)
                 .subspan(plan.source + plan.grid.packet_offset({index}), elements);
  } else {
    decoded_.resize(elements);
    codec::accumulate_first(format, call.staged(rank, from, index), 1.0f, decoded_);
    values = decoded_;
  }
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// Removes from `mask_` the contributions that are not finite. Returns true if there were any.
bool ReductionReference::leave_out_non_finite(const CallLedger& call, Rank rank,
                                              std::uint32_t index) {
  const std::uint64_t before = left_out_;
  for (Rank from = 0; from < size_; ++from) {
    if (scales_[from] == 0.0f || is_finite(call, rank, from, index)) continue;
    mask_[from / 64] &= ~(std::uint64_t{1} << (from % 64));
    ++left_out_;
  }
  return left_out_ != before;
}

void ReductionReference::sum(const CallLedger& call, Rank rank, std::uint32_t index) {
  const FlowPlan plan = call.plan.reduce_to(rank);
  const codec::Format& format = call.plan.reduce_format();
  const std::size_t offset = plan.grid.packet_offset({index});
  const std::size_t elements = plan.grid.packet_elements({index});
  packet_ = std::span(shard_).subspan(offset, elements);
  bool empty = true;
  const auto add_as_it_lies = [&](Rank from) {
    const auto values = std::span(call.ranks[from].source).subspan(plan.source + offset, elements);
    add_native(values, scales_[from], empty, packet_);
    empty = false;
  };
  const bool own_last = format.options.rotate;
  for (Rank from = 0; from < size_; ++from) {
    if (scales_[from] == 0.0f || (own_last && from == rank)) continue;
    if (from == rank || format.identity()) {
      add_as_it_lies(from);
      continue;
    }
    const ByteSpan bytes = call.staged(rank, from, index);
    empty ? codec::accumulate_first(format, bytes, scales_[from], packet_)
          : codec::accumulate(format, bytes, scales_[from], packet_);
    empty = false;
  }
  if (own_last) {
    if (!empty) codec::restore(format, {seed_, call.number, rank, plan.position + offset}, packet_);
    if (scales_[rank] != 0.0f) add_as_it_lies(rank);
  }
  if (empty) std::fill(packet_.begin(), packet_.end(), 0.0f);
  const std::vector<float>& control = call.ranks[rank].control;
  if (block_.control == 0.0f || control.empty()) return;
  for (std::size_t i = 0; i < elements; ++i)
    packet_[i] = packet_[i] + block_.control * control[offset + i];
}

void ReductionReference::compare(std::span<const float> expected, std::span<const float> found,
                                 std::uint32_t index, Outcome& outcome) const {
  ++outcome.packets;
  if (equal_bits(expected, found)) return;
  const auto differs = [](float a, float b) { return std::memcmp(&a, &b, sizeof(a)) != 0; };
  const auto at = std::mismatch(expected.begin(), expected.end(), found.begin(),
                                [&](float a, float b) { return !differs(a, b); });
  if (outcome.wrong++ == 0) {
    outcome.first_wrong = index;
    outcome.expected = *at.first;
    outcome.found = *at.second;
  }
  const float tolerance = kFar * std::max(largest(expected), largest(found));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(expected[i] - found[i]) <= tolerance) continue;
    ++outcome.far;
    return;
  }
}

void ReductionReference::check_packet(const CallLedger& call, Rank rank, std::uint32_t index,
                                      std::span<const float> result, Outcome& outcome) {
  const FlowPlan plan = call.plan.reduce_to(rank);
  const auto found = result.subspan(plan.result + plan.grid.packet_offset({index}),
                                    plan.grid.packet_elements({index}));
  open_.clear();
  for (Rank from = 0; from < size_; ++from) {
    if (!senders_[from].unsure || !call.plan.packet_scales()) continue;
    if (is_possible(call, rank, from, index) && !is_certain(call, rank, from, index))
      open_.push_back(from);
  }
  const bool adopted = call.plan.adopts();
  if (open_.size() > kOpenMax || (adopted && !open_.empty())) {
    unresolved_[index] = true;
    outcome.resolved = false;
    return;
  }
  // Finds the choice of contributions whose sum the engine has. Tries the likeliest choice first:
  // all contributions that came. Two choices give the same sum if a contribution weighs nothing, is
  // left out, or is zero. Then the engine's choice stays unknown.
  std::uint64_t made = 0;
  int fitting = 0;
  for (std::uint64_t choice = std::uint64_t{1} << open_.size(); fitting < 2 && choice-- > 0;) {
    reduce(call, rank, index, choice);
    if (equal_bits(packet_, found) && ++fitting == 1) made = choice;
  }
  reduce(call, rank, index, made);
  outcome.resolved &= fitting < 2;
  ++outcome.histogram[block_.contributors];
  outcome.non_finite += left_out_;
  if (block_.untouched) outcome.untouched += plan.grid.packet_elements({index});
  if (!adopted) compare(packet_, found, index, outcome);
}

// Checks that the owner holds what its receivers decode: the reference sum, encoded and decoded by
// the spread half's codec.
void ReductionReference::check_adopted(const CallLedger& call, Rank rank,
                                       std::span<const float> result, Outcome& outcome) {
  const FlowPlan plan = call.plan.spread(rank, rank);
  const schedule::PacketGrid reduced = call.plan.reduce_to(rank).grid;
  const codec::Format& format = call.plan.spread_format();
  for (std::uint32_t index = 0; index < plan.grid.packets(); ++index) {
    const std::size_t first = plan.grid.packet_offset({index});
    const std::size_t elements = plan.grid.packet_elements({index});
    const std::size_t last_part = (first + elements - 1) / reduced.elements_per_packet();
    bool resolved = true;
    for (std::size_t part = first / reduced.elements_per_packet(); part <= last_part; ++part)
      resolved &= !unresolved_[part];
    if (!resolved) continue;
    const auto values = std::span(shard_).subspan(first, elements);
    const codec::Place place{seed_, call.number, rank, plan.position + first};
    encoded_.resize(format.encoded_bytes(elements));
    codec::encode(format, values, place, encoded_);
    codec::decode(format, encoded_, place, values);
    compare(values, result.subspan(plan.result + first, elements), index, outcome);
  }
}

ReductionReference::Outcome ReductionReference::check(const CallLedger& call, Rank rank,
                                                      const CollectiveReport& report,
                                                      std::span<const float> result) {
  Outcome outcome;
  outcome.histogram.assign(size_ + 1, 0);
  take_senders(call, rank, report);
  if (!plan_scales(call, rank)) {
    outcome.resolved = false;
    return outcome;
  }
  const schedule::PacketGrid grid = call.plan.reduce_to(rank).grid;
  shard_.resize(grid.elements());
  unresolved_.assign(grid.packets(), false);
  for (std::uint32_t index = 0; index < grid.packets(); ++index)
    check_packet(call, rank, index, result, outcome);
  if (call.plan.adopts()) check_adopted(call, rank, result, outcome);
  return outcome;
}

void ReductionReference::learn(const CallLedger& call, Rank rank) {
  estimate::LinkHistory& history = histories_[rank];
  for (Rank from = 0; from < size_; ++from) {
    const FlowLedger& flow = call.ranks[rank].flow(FlowKind::reduce, from);
    if (flow.packets == 0) continue;
    const Sender& sender = senders_[from];
    std::int64_t first_pass = 0;
    for (std::uint32_t i = 0; i < sender.arrived; ++i) first_pass += flow.order[i].repaired ? 0 : 1;
    const double rate = static_cast<double>(first_pass) / flow.packets;
    history.learn_delivery(from, sender.counted ? rate : kUntold);
    if (!call.plan.fetches_empty()) continue;
    const bool certain = sender.counted || flow.distinct > flow.unsure;
    history.learn_heard(from, flow.packets, certain ? sender.arrived > 0 : kUntold);
  }
}

}  // namespace leeway::sim
