#include "checker/agreement.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

std::uint32_t digest_of(std::span<const float> values) {
  return crc32c(std::as_bytes(values));
}

std::span<const float> packet_of(const FlowPlan& plan, std::uint32_t index,
                                 std::span<const float> result) {
  return result.subspan(plan.result + plan.grid.packet_offset({index}),
                        plan.grid.packet_elements({index}));
}

}  // namespace

Agreement::Agreement(Check& check, int size, std::uint64_t seed, std::uint32_t age_max)
    : check_(check), size_(size), seed_(seed), age_max_(age_max), held_(size) {}

void Agreement::on_submit(Rank rank, const CallLedger& call, std::span<const float> result) {
  if (call.kind != CallKind::replica_broadcast || !held_[rank].empty()) return;
  held_[rank].resize(size_);
  for (Rank owner = 0; owner < size_; ++owner) {
    const FlowPlan plan = call.plan.spread(owner, rank);
    for (std::uint32_t index = 0; index < plan.grid.packets(); ++index)
      held_[rank][owner].push_back({digest_of(packet_of(plan, index, result)), 0});
  }
}

void Agreement::on_done(Instant now, Rank rank, CallLedger& call, const CollectiveReport& report,
                        std::span<const float> result) {
  if (call.plan.has_own_blocks()) {
    for (Rank from = 0; from < size_; ++from) compare_with_source(now, rank, from, call, result);
    return;
  }
  if (!call.plan.agrees()) return;
  call.shared.values.resize(result.size());
  for (Rank owner = 0; owner < size_; ++owner) compare_owner(now, rank, owner, call, result);
  if (call.kind == CallKind::replica_broadcast) compare_ages(now, rank, call, report, result);
  const bool promised =
      call.plan.spread_delivery() == Delivery::Kind::exact ||
      (call.plan.spread_delivery() == Delivery::Kind::bounded && call.kind == CallKind::all_reduce);
  if (!promised || report.elements_missing == 0) return;
  for (Rank owner = 0; owner < size_; ++owner) compare_cleared(now, rank, owner, call, result);
}

void Agreement::compare_owner(Instant now, Rank rank, Rank owner, CallLedger& call,
                              std::span<const float> result) {
  const FlowPlan plan = call.plan.spread(owner, rank);
  const std::uint32_t packets = plan.grid.packets();
  const FlowLedger& flow = call.ranks[rank].flow(FlowKind::spread, owner);
  const bool all_here = owner == rank || (flow.distinct == packets && flow.unsure == 0);
  const auto mine = result.subspan(plan.result, plan.grid.elements());
  const auto shared = std::span(call.shared.values).subspan(plan.result, plan.grid.elements());
  if (all_here && call.shared.count[owner] == packets && equal_bits(mine, shared)) {
    return check_.expect(true, [] { return std::string(); });
  }
  for (std::uint32_t index = 0; index < packets; ++index) {
    const bool here = owner == rank || (flow.seen.test(index) && !flow.maybe_late.test(index));
    if (here) compare_packet(now, rank, owner, call, index, result);
  }
}

void Agreement::compare_packet(Instant now, Rank rank, Rank owner, CallLedger& call,
                               std::uint32_t index, std::span<const float> result) {
  const FlowPlan plan = call.plan.spread(owner, rank);
  const auto mine = packet_of(plan, index, result);
  const auto shared = std::span(call.shared.values)
                          .subspan(plan.result + plan.grid.packet_offset({index}), mine.size());
  Bitmap& known = call.shared.known[owner];
  if (!known.test_and_set(index)) {
    std::copy(mine.begin(), mine.end(), shared.begin());
    ++call.shared.count[owner];
    return;
  }
  check_.expect(equal_bits(mine, shared), [&] {
    return where(now, rank, call) +
           format_text(": packet %u of rank %u's block differs from what others hold of it", index,
                       owner);
  });
}

void Agreement::compare_with_source(Instant now, Rank rank, Rank from, const CallLedger& call,
                                    std::span<const float> result) {
  const FlowPlan plan = call.plan.spread(from, rank);
  const FlowLedger& flow = call.ranks[rank].flow(FlowKind::spread, from);
  for (std::uint32_t index = 0; index < plan.grid.packets(); ++index) {
    const bool own = from == rank;
    if (!own && (!flow.seen.test(index) || flow.maybe_late.test(index))) continue;
    const auto mine = packet_of(plan, index, result);
    const auto brought =
        own ? brought_by(from, rank, call, index) : sent_by(from, rank, call, index);
    check_.expect(equal_bits(mine, brought), [&] {
      return where(now, rank, call) +
             format_text(": packet %u is not what rank %u brought", index, from);
    });
  }
}

std::span<const float> Agreement::brought_by(Rank from, Rank to, const CallLedger& call,
                                             std::uint32_t index) const {
  const FlowPlan plan = call.plan.spread(from, to);
  return std::span(call.ranks[from].source)
      .subspan(plan.source + plan.grid.packet_offset({index}), plan.grid.packet_elements({index}));
}

std::span<const float> Agreement::sent_by(Rank from, Rank to, const CallLedger& call,
                                          std::uint32_t index) {
  const auto brought = brought_by(from, to, call, index);
  const codec::Format& format = call.plan.spread_format();
  if (format.identity()) return brought;
  const FlowPlan plan = call.plan.spread(from, to);
  const codec::Place place{seed_, call.number, from,
                           plan.position + plan.grid.packet_offset({index})};
  encoded_.resize(format.encoded_bytes(brought.size()));
  decoded_.resize(brought.size());
  codec::encode(format, brought, place, encoded_);
  codec::decode(format, encoded_, place, decoded_);
  return decoded_;
}

// Checks that elements that were promised but never came are zero, so that no stale gradient is
// applied.
void Agreement::compare_cleared(Instant now, Rank rank, Rank owner, const CallLedger& call,
                                std::span<const float> result) {
  if (owner == rank) return;
  const FlowPlan plan = call.plan.spread(owner, rank);
  const FlowLedger& flow = call.ranks[rank].flow(FlowKind::spread, owner);
  for (std::uint32_t index = 0; index < flow.packets; ++index) {
    if (flow.seen.test(index)) continue;
    const auto mine = packet_of(plan, index, result);
    check_.expect(std::all_of(mine.begin(), mine.end(), [](float value) { return value == 0.0f; }),
                  [&] {
                    return where(now, rank, call) +
                           format_text(": packet %u of rank %u's block never came and is not zero",
                                       index, owner);
                  });
  }
}

void Agreement::compare_ages(Instant now, Rank rank, const CallLedger& call,
                             const CollectiveReport& report, std::span<const float> result) {
  for (Rank owner = 0; owner < size_; ++owner) {
    if (owner == rank) continue;
    const FlowPlan plan = call.plan.spread(owner, rank);
    const FlowLedger& flow = call.ranks[rank].flow(FlowKind::spread, owner);
    const bool excused = report.deadline_cut || flow.left;
    const bool late = std::any_of(report.peers.begin(), report.peers.end(), [&](const auto& row) {
      return row.rank == owner && row.late > 0;
    });
    for (std::uint32_t index = 0; index < flow.packets; ++index) {
      Held& held = held_[rank][owner][index];
      const bool seen = flow.seen.test(index);
      const std::uint32_t digest = digest_of(packet_of(plan, index, result));
      const bool same = digest == held.digest;
      // A packet that may be late was used by the engine if the block has changed, or equals what
      // the owner sent.
      const bool fresh =
          seen && (!late || !flow.maybe_late.test(index) || !same ||
                   equal_bits(packet_of(plan, index, result), sent_by(owner, rank, call, index)));
      held.age = fresh ? 0 : held.age + 1;
      held.digest = digest;
      check_.expect(fresh || same, [&] {
        return where(now, rank, call) +
               format_text(": block %u of rank %u changed though no packet brought it", index,
                           owner);
      });
      check_.expect(age_max_ == 0 || held.age <= age_max_ || excused, [&] {
        return where(now, rank, call) +
               format_text(": block %u of rank %u is %u versions old, %u allowed", index, owner,
                           held.age, age_max_);
      });
    }
  }
}

}  // namespace leeway::sim
