#include "checker/use_check.h"

#include "base/limits.h"

namespace leeway::sim {

using wire::FlowKind;

void UseCheck::on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result,
                       bool confirmed) {
  check_weights(now, rank, call);
  for (const PeerReport& row : result.report->peers) {
    const RankLedger& owner = call.ranks[row.rank];
    const FlowLedger& flow = owner.flow(FlowKind::reduce, rank);
    if (flow.packets == 0) {
      check_.expect(!row.missed, [&] {
        return where(now, rank, call) +
               format_text(": rank %u missed it, which owns nothing", row.rank);
      });
      continue;
    }
    if (row.missed) {
      check_.expect(flow.distinct == flow.unsure, [&] {
        return where(now, rank, call) +
               format_text(": rank %u is said to have used nothing, and had %u packets in time",
                           row.rank, flow.distinct - flow.unsure);
      });
      continue;
    }
    const bool gone = call.ranks[rank].flow(FlowKind::reduce, row.rank).left;
    if (!confirmed || !result.status.ok() || result.deadline_cut || gone) continue;
    if (!owner.submitted || (owner.over && !owner.succeeded)) continue;
    const bool in_time = now < call.ends(rank);
    check_.expect(flow.distinct > 0 || !in_time, [&] {
      return where(now, rank, call) +
             format_text(": rank %u had nothing of it and is not said to have missed it", row.rank);
    });
  }
}

void UseCheck::check_weights(Instant now, Rank rank, const CallLedger& call) {
  for (Rank from = 0; from < book_.size(); ++from) {
    const float told = call.ranks[rank].flow(FlowKind::reduce, from).weight;
    if (from == rank || told != told) continue;
    const float meant = call.ranks[from].weight_for(rank);
    check_.expect(told == meant, [&] {
      return where(now, rank, call) +
             format_text(": the weight of rank %u came as %.9g, and is %.9g", from, told, meant);
    });
  }
}

}  // namespace leeway::sim
