#include "checker/departures.h"

#include <algorithm>

#include "base/limits.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

// These values must equal those in src/core/protocol/departure.cc.
constexpr Duration kBackOff = Duration(limits::kBackOffNs);
constexpr int kServeTimeouts = 64;
constexpr Duration kServeMin = 4 * kBackOff;
constexpr Duration kRelayMax = std::chrono::seconds(60);

// A leaving rank sends good-byes after 1, 1, 1, 2, 2, 2, 2, 4, ... time-outs. Without an answer it
// sends at least twelve, for at least two seconds, so the last may come a back-off later.
constexpr int kFarewellTimeouts = 40;
constexpr Duration kFarewell = 4 * kBackOff;

double ms(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace

void Departures::on_leave(Instant now, Rank rank, bool at_once) {
  RankState& state = ranks_[rank];
  state.leaving = true;
  state.at_once = at_once;
  state.leave_at = now;
  on_pumped(rank);
}

void Departures::on_pumped(Rank rank) {
  RankState& state = ranks_[rank];
  if (!state.leaving) return;
  const protocol::Endpoint& endpoint = book_.engine(rank).endpoint();
  state.slowest = std::max(state.slowest, endpoint.state().slowest_timeout());
  state.forwards |= endpoint.state().departure.has_forwarded();
}

void Departures::on_pause(Instant now, Rank rank) {
  ranks_[rank].paused = true;
  ranks_[rank].paused_at = now;
}

void Departures::on_resume(Instant now, Rank rank) {
  RankState& state = ranks_[rank];
  if (!state.paused) return;
  state.paused = false;
  if (state.leaving) state.paused_for += now - std::max(state.paused_at, state.leave_at);
}

void Departures::on_left(Instant now, Rank rank) {
  RankState& state = ranks_[rank];
  state.left = true;
  state.left_at = now;
  state.knew.resize(book_.size());
  for (Rank peer = 0; peer < book_.size(); ++peer)
    state.knew[peer] = peer != rank && book_.engine(rank).endpoint().link(peer).heard;
  const Duration serves_least = state.forwards ? kRelayMax : kServeMin;
  const Duration serves =
      state.at_once ? Duration(0) : std::max(kServeTimeouts * state.slowest, serves_least);
  const Duration bound = serves + std::max(kFarewellTimeouts * state.slowest, kFarewell);
  const Duration took = now - state.leave_at - state.paused_for;
  check_.expect(took <= bound, [&] {
    return format_text(
        "rank %u, at %.6f ms: has left %.3f ms after it began to (pauses apart); its time-outs are "
        "up to %.3f ms, which bounds it at %.3f ms",
        rank, static_cast<double>(now.ns) / 1e6, ms(took), ms(state.slowest), ms(bound));
  });
}

void Departures::on_goodbye(Instant now, Rank rank, Rank from) {
  Instant& heard = ranks_[rank].heard_at[from];
  if (heard.ns == 0) heard = now;
}

bool Departures::may_have_cut(Instant now, const Status& status) const {
  if (!status.ok() && status.code() != StatusCode::kPeerLost) return false;
  for (Rank rank = 0; rank < book_.size(); ++rank) {
    const RankState& state = ranks_[rank];
    if (state.leaving && (now - state.leave_at >= kServeMin || at_once(rank))) return true;
  }
  return false;
}

// Returns true if the rank leaves without serving its peers, because its caller wants that, or
// because the others gave it up and told it (WIRE 6.7).
bool Departures::at_once(Rank rank) const {
  return ranks_[rank].at_once || !book_.engine(rank).endpoint().liveness().given_up().ok();
}

void Departures::on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result) {
  check_failure(now, rank, call, result);
  if (!pauses_) check_wait(now, rank, call, result);
}

void Departures::check_failure(Instant now, Rank rank, const CallLedger& call,
                               const CallResult& result) {
  if (result.status.code() != StatusCode::kPeerLost) return;
  if (!book_.engine(rank).endpoint().liveness().given_up().ok()) return;  // I18 judges that
  for (Rank peer = 0; peer < book_.size(); ++peer) {
    const RankState& state = ranks_[peer];
    const Instant heard = ranks_[rank].heard_at[peer];
    const bool left = state.leaving && !at_once(peer);  // after serving
    if (peer == rank || heard.ns == 0 || !left || !call.ranks[peer].succeeded) continue;
    const protocol::Link& link = book_.engine(rank).endpoint().link(peer);
    if (link.dead || link.gave_us_up) continue;  // I18 judges that, too
    const Duration served = heard - state.leave_at;
    // Only exact halves count: a lossy half may miss packets of ranks that stay, too.
    bool missing = false;
    if (call.plan.delivery().kind == Delivery::Kind::exact)
      missing |= call.ranks[rank].flow(FlowKind::reduce, peer).missing() > 0;
    if (call.plan.spread_delivery() == Delivery::Kind::exact)
      missing |= call.ranks[rank].flow(FlowKind::spread, peer).missing() > 0;
    const bool open = heard < call.ends(peer);
    check_.expect(!missing || served >= kServeMin || !open, [&] {
      return where(now, rank, call) +
             format_text(": failed although rank %u had only served for %.3f ms: ", peer,
                         ms(served)) +
             result.status.c_str();
    });
  }
}

Duration Departures::timeout(Rank rank, Rank peer) const {
  return book_.engine(rank).endpoint().link(peer).rtt().timeout() + 2 * Duration(limits::kTickNs);
}

// Returns true if the peer had left so long before `limit` that the rank knows it, or must know it.
// A peer that never heard the rank may have left before the rank opened the communicator. The
// peer's last packets may be in flight for a time-out after the call was opened.
bool Departures::left_early(Instant opened, Instant limit, Rank rank, Rank peer) const {
  const RankState& state = ranks_[peer];
  const Instant heard = ranks_[rank].heard_at[peer];
  const bool told = heard.ns != 0 && std::max(heard, opened) + timeout(rank, peer) < limit;
  const bool left = state.left && state.knew[rank] && !outages_ &&
                    std::max(state.left_at, opened) + timeout(rank, peer) < limit;
  return told || left;
}

void Departures::check_wait(Instant now, Rank rank, const CallLedger& call,
                            const CallResult& result) {
  // A call that fails before its own deadline was ended by a peer's deadline, so it is not checked
  // here.
  const bool overdue =
      result.status.code() == StatusCode::kDeadlineExceeded && now >= call.ends(rank);
  if (!(result.deadline_cut && now >= call.reduce_ends(rank)) && !overdue) return;
  const RankLedger& side = call.ranks[rank];
  bool lacks = overdue;  // if nothing is lacking, I3 finds the cut
  bool waits = false;    // the rank waits for a peer that has not left
  for (Rank peer = 0; peer < book_.size(); ++peer) {
    if (peer == rank) continue;
    for (const FlowKind kind : {FlowKind::reduce, FlowKind::spread}) {
      const FlowLedger& flow = side.flow(kind, peer);
      const Instant limit =
          kind == FlowKind::reduce && !overdue ? call.reduce_ends(rank) : call.ends(rank);
      const bool early = left_early(side.submitted_at, limit, rank, peer);
      // An exact call may lack only a confirmation, which cannot be seen from outside. So an
      // overdue call counts as incomplete.
      const bool incomplete = overdue || flow.missing() + flow.unsure > 0;
      // Before `limit`, this rank's own deadline, only a peer's deadline can have ended the call.
      // So an incomplete flow does not count as lacking then.
      lacks |= incomplete && now >= limit;
      waits |= !early && incomplete;
    }
  }
  check_.expect(waits || !lacks, [&] {
    return where(now, rank, call) +
           ": cut by its deadline although every rank that it lacks packets of had left long "
           "before";
  });
}

}  // namespace leeway::sim
