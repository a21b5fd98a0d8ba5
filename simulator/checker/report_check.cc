#include "checker/report_check.h"

#include <algorithm>
#include <cinttypes>

namespace leeway::sim {
namespace {

using wire::FlowKind;

constexpr FlowKind kHalves[] = {FlowKind::reduce, FlowKind::spread};

const char* name_of(FlowKind kind) {
  return kind == FlowKind::reduce ? "reduce" : "spread";
}

bool is_active(const CallPlan& plan, FlowKind kind) {
  return kind == FlowKind::reduce ? plan.reduces() : plan.spreads();
}

// Counts of one sender, both halves.
struct Seen {
  std::uint64_t packets = 0;
  std::uint64_t distinct = 0;
  std::uint64_t copies = 0;
  std::uint64_t repaired = 0;
  std::uint64_t unsure = 0;
  std::uint64_t unsure_follow = 0;
};

Seen seen_of(const RankLedger& side, Rank from) {
  Seen seen;
  for (const FlowKind kind : kHalves) {
    const FlowLedger& flow = side.flow(kind, from);
    seen.packets += flow.packets;
    seen.distinct += flow.distinct;
    seen.copies += flow.copies;
    seen.repaired += flow.repaired;
    seen.unsure += flow.unsure;
    seen.unsure_follow += flow.unsure_follow;
  }
  return seen;
}

// Returns how many packets the ledger counts as computed from parity although the engine may not
// have computed them, because a packet that the computation needs may have been late.
std::uint64_t unfollowed(const Seen& seen, const PeerReport& row) {
  return row.late == 0 ? 0 : seen.unsure_follow;
}

}  // namespace

void ReportCheck::on_damaged(Rank from, Rank to) {
  damaged_.resize(static_cast<std::size_t>(book_.size()) * book_.size());
  damaged_[static_cast<std::size_t>(from) * book_.size() + to] = true;
}

void ReportCheck::on_done(Instant now, Rank rank, const CallLedger& call,
                          const CallResult& result) {
  if (!call.ranks[rank].opened) return check_unopened(now, rank, call, result);
  take_back_unread(rank, call, result);
  for (const PeerReport& row : result.report->peers) check_row(now, rank, call, row);
  check_sums(now, rank, call, result);
  if (!has_result(result)) return;
  check_missing(now, rank, call, result);
  check_contributions(now, rank, call, result);
  for (const PeerReport& row : result.report->peers) {
    for (const FlowKind kind : kHalves) {
      if (is_active(call.plan, kind)) check_reason(now, rank, call, kind, row.rank, result);
    }
  }
}

void ReportCheck::check_unopened(Instant now, Rank rank, const CallLedger& call,
                                 const CallResult& result) {
  const StatusCode code = result.status.code();
  const bool given_up = !book_.engine(rank).endpoint().liveness().given_up().ok();
  const bool excused =
      code == StatusCode::kCancelled || (code == StatusCode::kPeerLost && given_up);
  check_.expect(excused && result.report->peers.empty() && result.bytes_sent == 0, [&] {
    return where(now, rank, call) +
           format_text(": never opened, and says something of %zu peers; status ",
                       result.report->peers.size()) +
           (result.status.ok() ? "ok" : result.status.c_str());
  });
}

// Takes copies out of the ledger until it has as many as the report. The call may have ended in the
// middle of a batch, and then the engine has not read the rest of the batch.
void ReportCheck::take_back_unread(Rank rank, const CallLedger& call, const CallResult& result) {
  std::uint64_t seen = 0;
  std::uint64_t told = 0;
  for (const PeerReport& row : result.report->peers) {
    const Seen of_peer = seen_of(call.ranks[rank], row.rank);
    seen += of_peer.copies - unfollowed(of_peer, row);
    told += row.arrived + row.duplicate + row.late;
  }
  if (told < seen) (void)book_.take_back(rank, seen - told, !result.status.ok());
}

void ReportCheck::check_row(Instant now, Rank rank, const CallLedger& call, const PeerReport& row) {
  const Seen seen = seen_of(call.ranks[rank], row.rank);
  const std::uint64_t told = row.arrived + row.duplicate + row.late;
  const bool copies_good = told <= seen.copies && seen.copies - told <= unfollowed(seen, row);
  const std::uint64_t least = row.late == 0 ? seen.distinct : seen.distinct - seen.unsure;
  const bool arrived_good = row.arrived <= seen.distinct && row.arrived >= least;
  const bool repaired_good =
      row.repaired <= seen.repaired && seen.repaired - row.repaired <= seen.distinct - row.arrived;
  const bool expected_good = row.expected == seen.packets;
  check_.expect(copies_good && arrived_good && repaired_good && expected_good, [&] {
    return where(now, rank, call) +
           format_text(": from rank %u the report has %" PRIu64 " expected, %" PRIu64
                       " arrived, %" PRIu64 " repaired, %" PRIu64 " duplicate, %" PRIu64
                       " late; the network handed over %" PRIu64 " copies of %" PRIu64
                       " of %" PRIu64 " packets (%" PRIu64 " repaired, %" PRIu64 " perhaps late)",
                       row.rank, row.expected, row.arrived, row.repaired, row.duplicate, row.late,
                       seen.copies, seen.distinct, seen.packets, seen.repaired, seen.unsure);
  });
}

void ReportCheck::check_sums(Instant now, Rank rank, const CallLedger& call,
                             const CallResult& result) {
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t repaired = 0;
  for (const PeerReport& row : result.report->peers) {
    expected += row.expected;
    arrived += row.arrived;
    repaired += row.repaired;
  }
  const auto missing = [&](std::uint64_t here) {
    return expected == 0 ? 0.0 : 1.0 - static_cast<double>(here) / static_cast<double>(expected);
  };
  const bool good = result.expected == expected && result.arrived == arrived &&
                    result.arrived_first == arrived - repaired &&
                    result.report->loss == missing(arrived) &&
                    result.report->loss_first_pass == missing(arrived - repaired) &&
                    result.report->sequence == call.ranks[rank].sequence &&
                    result.report->peers.size() + 1 == static_cast<std::size_t>(book_.size());
  check_.expect(good, [&] {
    return where(now, rank, call) +
           format_text(": loss %.9g and %.9g of call %" PRIu64
                       " do not follow from its rows: %" PRIu64 " of %" PRIu64 " arrived, %" PRIu64
                       " of them repaired",
                       result.report->loss, result.report->loss_first_pass, result.report->sequence,
                       arrived, expected, repaired);
  });
}

// Checks the report's number of contributions of which nothing came. This number is at least that
// of the contributions without any packet, and at most that of the contributions without a packet
// that certainly came in time.
void ReportCheck::check_contributions(Instant now, Rank rank, const CallLedger& call,
                                      const CallResult& result) {
  if (!call.plan.reduces()) return;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  for (Rank from = 0; from < book_.size(); ++from) {
    const FlowLedger& flow = call.ranks[rank].flow(FlowKind::reduce, from);
    if (flow.packets == 0) continue;
    least += flow.distinct == 0;
    most += flow.distinct <= flow.unsure;
  }
  const std::uint32_t told = result.report->contributions_missing;
  check_.expect(told >= least && told <= most, [&] {
    return where(now, rank, call) +
           format_text(": the report says that nothing came of %u contributions; it is %u to %u",
                       told, least, most);
  });
}

// Checks elements_missing and `complete` in the report against the elements that no packet brought.
void ReportCheck::check_missing(Instant now, Rank rank, const CallLedger& call,
                                const CallResult& result) {
  if (!call.plan.spreads()) return;
  const RankLedger& side = call.ranks[rank];
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  for (Rank from = 0; from < book_.size(); ++from) {
    const FlowLedger& flow = side.flow(FlowKind::spread, from);
    if (flow.packets == 0 || (flow.missing() == 0 && flow.unsure == 0)) continue;
    const schedule::PacketGrid grid = call.plan.spread(from, rank).grid;
    for (std::uint32_t index = 0; index < flow.packets; ++index) {
      const bool seen = flow.seen.test(index);
      if (seen && !flow.maybe_late.test(index)) continue;
      most += grid.packet_elements({index});
      if (!seen) least += grid.packet_elements({index});
    }
  }
  const CollectiveReport& report = *result.report;
  const bool good = report.elements_missing >= least && report.elements_missing <= most &&
                    report.complete == (report.elements_missing == 0);
  check_.expect(good, [&] {
    return where(now, rank, call) +
           format_text(": %" PRIu64 " elements missing, complete: %d; %" PRIu64 " to %" PRIu64
                       " have not been brought by any packet",
                       report.elements_missing, report.complete, least, most);
  });
}

void ReportCheck::check_reason(Instant now, Rank rank, const CallLedger& call, FlowKind kind,
                               Rank from, const CallResult& result) {
  const RankLedger& side = call.ranks[rank];
  const FlowLedger& flow = side.flow(kind, from);
  const Instant limit = kind == FlowKind::reduce ? call.reduce_ends(rank) : call.ends(rank);
  const bool cut = result.deadline_cut && now >= limit;
  const auto cut_there = [](const FlowLedger& one) {
    return one.left && (one.missing() > 0 || one.unsure > 0);
  };
  const bool by_peer = std::any_of(side.flows.begin(), side.flows.end(), [&](const auto& half) {
    return std::any_of(half.begin(), half.end(), cut_there);
  });
  check_.expect(!result.deadline_cut || by_peer || now >= call.reduce_ends(rank), [&] {
    return where(now, rank, call) + ": cut by its deadline, which has not come";
  });
  if (flow.missing() == 0 || cut || flow.left) return;
  const Delivery::Kind delivery =
      kind == FlowKind::reduce ? call.plan.delivery().kind : call.plan.spread_delivery();
  const auto missing = [&] {
    return where(now, rank, call) +
           format_text(": %u of %u packets of the %s half are missing from rank %u", flow.missing(),
                       flow.packets, name_of(kind), from);
  };
  check_.expect(flow.ended, [&] { return missing() + ", which has not ended"; });
  check_.expect(delivery != Delivery::Kind::exact, [&] { return missing() + ": exact"; });
  if (delivery == Delivery::Kind::bounded) {
    const bool repaired = kind == FlowKind::spread && call.kind == CallKind::all_reduce;
    const double allowed = repaired ? 0.0 : call.plan.delivery().loss_max * flow.packets;
    check_.expect(flow.missing() <= allowed,
                  [&] { return missing() + format_text("; allowed are %.1f", allowed); });
  }
  const bool fetched = kind == FlowKind::reduce && call.plan.fetches_empty();
  check_.expect(!fetched || flow.distinct > flow.repaired, [&] {
    return missing() + ", whose whole first pass was lost: it should have been asked for again";
  });
  const bool damaged =
      !damaged_.empty() && damaged_[static_cast<std::size_t>(from) * book_.size() + rank];
  if (!ordered_ || damaged) return;
  const std::uint32_t excused = flow.lost + flow.dropped_early;
  check_.expect(flow.missing() <= excused, [&] {
    return missing() + format_text(
                           ", though the network lost %u on the first pass and %u found no "
                           "place before the call was open",
                           flow.lost, flow.dropped_early);
  });
}

}  // namespace leeway::sim
