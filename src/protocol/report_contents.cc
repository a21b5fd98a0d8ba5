#include "protocol/report_contents.h"

namespace leeway::protocol {
namespace {

bool list(const Round& round, Rank peer, wire::Report& report) {
  if (report.open_count == report.open.size()) return false;
  const bool point = round.plan->point_to_point();
  wire::OpenRound& entry = report.open[report.open_count++];
  entry = {.round = round.number,
           .point_to_point = point,
           .sending = round.plan->point_send,
           .tag = round.plan->tag};
  if (round.plan->in_pairs())
    wire::tell_pair(round.plan->pair_sends[peer], round.plan->pair_receives[peer], entry.tag);
  const auto settled = [&](FlowKind kind) {
    if (!round.plan->phase(kind).active) return true;
    const ReceiveFlow& flow = round.receive(kind, peer);
    // WIRE 3.4: a peer that has left is not asked to say so again.
    return !flow.open() || flow.abandoned;
  };
  entry.reduce_settled = settled(FlowKind::reduce);
  entry.spread_settled = settled(point ? FlowKind::point : FlowKind::spread);
  return true;
}

// Messages that are about to fail: both sides must learn it (WIRE 3.5).
void list_failing(const MessageList& messages, Rank peer, wire::Report& report) {
  for (std::size_t i = 0; i < messages.talking(); ++i) {
    if (!messages[i].failure.ok()) list(messages[i], peer, report);
  }
}

// Posted receives, oldest first; for one there is always room. To the peer, a receive that finds no
// room has not been posted yet (WIRE 3.4).
void list_receives(const MessageList& receives, Rank peer, wire::Report& report) {
  std::size_t listed = 0;
  while (listed < receives.talking() &&
         (!receives[listed].failure.ok() || list(receives[listed], peer, report))) {
    ++listed;
  }
  if (listed < receives.size()) report.point_opened_below = receives[listed].number;
}

}  // namespace

wire::Report report_contents(Instant now, Rank peer, const Link& link, const RoundTable& rounds,
                             const Disputes& disputes) {
  wire::Report report;
  report.largest_sequence = link.path().largest_seen();
  report.received = link.path().received();
  report.delay_us = static_cast<std::uint32_t>(link.path().since_largest(now).count() / 1000);
  report.opened_below = rounds.opened_below();
  report.point_opened_below = rounds.receives_opened(peer);
  report.group_largest = link.group.largest_seen();
  report.heard_goodbye = link.gone;
  report.missed = link.missed.bits(rounds.opened_below());
  for (const Round* round : rounds.collectives()) list(*round, peer, report);
  const PeerMessages* messages = rounds.messages(peer);
  if (messages != nullptr) {
    list_failing(messages->sends, peer, report);
    list_failing(messages->receives, peer, report);
    list_receives(messages->receives, peer, report);
  }
  disputes.list(peer, rounds.opened_below(), report);
  if (messages == nullptr) return report;
  // Our own messages come last: the peer can do without them.
  for (std::size_t i = 0; i < messages->sends.talking(); ++i) {
    if (messages->sends[i].failure.ok()) list(messages->sends[i], peer, report);
  }
  return report;
}

}  // namespace leeway::protocol
