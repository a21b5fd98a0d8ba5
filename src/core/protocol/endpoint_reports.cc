// Reports of peers: how far a peer has come, which datagrams reached it, which operation it means.
#include <algorithm>

#include "protocol/awaited.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {

// The peer has opened the operation only now. It could use no END before, so the back-off of ENDs
// starts anew.
void Endpoint::repeat_end_soon(Instant now, Round& round, Rank peer) {
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active) continue;
    SendFlow& flow = round.send(static_cast<FlowKind>(k), peer);
    flow.end_tries = 0;
    if (!flow.open() || !flow.pass_over) continue;
    flow.end_at = std::min(flow.end_at, now + links_[peer].rtt().timeout());
    timers_.arm_link(peer, flow.end_at);
  }
}

void Endpoint::on_report(Instant now, Rank from, const wire::Report& report) {
  Link& link = links_[from];
  // Checked before anything in the report is believed: a made-up number would close the rounds
  // below it.
  if (!may_have_opened(from, report.opened_below) ||
      after(report.point_opened_below, link.peer_point_opened_below + limits::kMessagesHeardMax)) {
    ++counters_.refused_progress;
    return;
  }
  const Duration timeout_before = link.rtt().timeout();
  if (!link.group.on_report(group_.sent(), report.group_largest) ||
      !link.on_report(now, {.largest_sequence = report.largest_sequence,
                            .received = report.received,
                            .received_bytes = report.received_bytes,
                            .arrived_us = report.arrived_us,
                            .ect = report.ect,
                            .ce = report.ce,
                            .grant = report.grant,
                            .host_drops = report.host_drops,
                            .delay = std::chrono::microseconds(report.delay_us)})) {
    ++counters_.refused_report;
    return;
  }
  // Timers that were armed with a longer time-out may be due sooner.
  if (link.rtt().timeout() < timeout_before) timers_.arm_link(from, now + link.rtt().timeout());
  if (take_opened(from, report)) {
    for (Round* round : rounds_.with(from)) {
      if (!round->plan->point_to_point() || round->gates_closed == 0 || !gate_open(*round, from))
        continue;
      round->gates_closed = 0;
      round->gate_open_at = now;
      repeat_end_soon(now, *round, from);
    }
  }
  if (departure_.parting() && report.heard_goodbye) departure_.on_answer(from);
  if (departure_.serving()) {
    const auto open = std::span(report.open).first(report.open_count);
    const bool waits = !std::all_of(open.begin(), open.end(),
                                    [](const wire::OpenRound& entry) { return entry.failed(); });
    link.content = !waits && !after(rounds_.opened_below(), report.opened_below);
    timers_.arm_leave(now);
  }
  on_peer_progress(now, from, report.opened_below, link.peer_settled_below);
  hear_failures(from, report);
  if (waits_in_vain(report)) queue_report(from);
  answer_receives(from, report);
  for (Round* round : rounds_.with(from)) {
    if (!round->ended) apply_report(now, *round, from, report);
  }
  outbox_.queue_data(from);  // credit may have come back
  queue_group();
}

// Returns true if the peer has posted more receives than we knew of. Also notes messages of watched
// tags that it is sending.
bool Endpoint::take_opened(Rank from, const wire::Report& report) {
  Link& link = links_[from];
  bool more = after(report.point_opened_below, link.peer_point_opened_below);
  if (more) link.peer_point_opened_below = report.point_opened_below;
  for (const wire::OpenRound& entry : std::span(report.open).first(report.open_count)) {
    if (entry.point_to_point && entry.sending && !entry.failed())
      note_heard(from, entry.message_tag, entry.round);
  }
  const auto said = std::span(report.streams).first(report.stream_count);
  if (said.empty()) return more;
  // Made also for a peer with which there was no message yet. It may have posted the first receive
  // before we posted our send, and does not repeat that before its time-out.
  PeerMessages& messages = rounds_.make_messages(from);
  messages.remember(said);
  for (const wire::OpenedStream& opened : said) {
    MessageStream* const stream = messages.find(opened.tag);
    if (stream == nullptr || !after(opened.opened_below, stream->peer_opened_below)) continue;
    stream->peer_opened_below = opened.opened_below;
    more = true;
  }
  return more;
}

// Returns true if the peer waits for packets of a collective that we have given up. If it were not
// told, it would wait until its deadline. It would then open the next collective when we give that
// up, too, and the two ranks would never meet again.
bool Endpoint::waits_in_vain(const wire::Report& report) const {
  const auto listed = std::span(report.open).first(report.open_count);
  return std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& theirs) {
    if (theirs.point_to_point || !rounds_.may_have_given_up(theirs.round)) return false;
    if (theirs.reduce_settled && theirs.spread_settled) return false;
    const auto open = rounds_.collectives();
    return std::none_of(open.begin(), open.end(), [&](const Round* round) {
      return !round->ended && round->number == theirs.round;
    });
  });
}

// Tells the receiver of a send that its deadline ended. Otherwise it would wait for the message.
void Endpoint::give_message_up(const Round& round) {
  const Rank peer = round.plan->point_peer;
  if (!round.send(FlowKind::point, peer).open() || links_[peer].gone) return;
  rounds_.messages(peer)->give_up(round.plan->message_tag, round.number);
  queue_report(peer);
}

// The peer waits for messages that were given up here. It did not hear that, or opened its receive
// later.
void Endpoint::answer_receives(Rank from, const wire::Report& report) {
  PeerMessages* const messages = rounds_.messages(from);
  if (messages == nullptr) return;
  for (const wire::OpenRound& entry : std::span(report.open).first(report.open_count)) {
    if (!entry.point_to_point || entry.sending || entry.spread_settled) continue;
    const MessageStream* const stream = messages->find(entry.message_tag);
    if (stream == nullptr || !after(stream->sends_opened, entry.round)) continue;
    if (stream->sends.find(entry.round) != nullptr) continue;
    messages->give_up(entry.message_tag, entry.round);
    queue_report(from);
  }
}

void Endpoint::apply_report(Instant now, Round& round, Rank from, const wire::Report& report) {
  const bool point = round.plan->point_to_point();
  const auto listed = std::span(report.open).first(report.open_count);
  const auto theirs = std::find_if(listed.begin(), listed.end(), [&](const wire::OpenRound& entry) {
    return entry.round == round.number && entry.point_to_point == point &&
           (!point || (entry.sending != round.plan->point_send &&
                       entry.message_tag == round.plan->message_tag));
  });
  if (theirs != listed.end()) {
    if (theirs->failed() && !point) learn_use(round, from, report);
    on_entry(now, round, from, *theirs);
    if (theirs->failed() || round.ended) return;
  }
  // A receive learns nothing else from a report of the sender.
  if (point && !round.plan->point_send) return;
  const auto opened =
      point ? report.messages_opened_below(round.plan->message_tag) : report.opened_below;
  if (!opened || !after(*opened, round.number)) return;  // not opened there yet: nothing to learn
  if (!point && (theirs == listed.end() || theirs->reduce_settled)) learn_use(round, from, report);
  if (theirs == listed.end()) return on_peer_left_round(now, round, from);
  if (point && theirs->spread_settled) settle_send(round, FlowKind::point, from);
  if (!point && theirs->reduce_settled && round.plan->phase(FlowKind::reduce).active) {
    settle_send(round, FlowKind::reduce, from);
  }
  if (!point && theirs->spread_settled && round.plan->phase(FlowKind::spread).active) {
    settle_send(round, FlowKind::spread, from);
  }
  advance(now, round);
}

// The reporter has settled the flow that we send it for this reduction.
void Endpoint::learn_use(Round& round, Rank from, const wire::Report& report) {
  if (!round.plan->phase(FlowKind::reduce).active) return;
  SendFlow& flow = round.send(FlowKind::reduce, from);
  flow.informed = true;
  // Once set, it stays set: an overtaken report takes nothing back.
  flow.missed |= flow.packets > 0 && report.missed_round(round.number);
}

void Endpoint::hear_failures(Rank from, const wire::Report& report) {
  for (const wire::OpenRound& entry : std::span(report.open).first(report.open_count)) {
    // Another report tells of a lossy call that ended by its deadline once it is open here.
    const bool again = entry.tag.delivery != Delivery::Kind::exact &&
                       entry.failure == StatusCode::kDeadlineExceeded;
    if (entry.failed() && !entry.point_to_point && !again &&
        !after(rounds_.opened_below(), entry.round))
      heard_failures_.hear(from, entry);
  }
}

void Endpoint::on_entry(Instant now, Round& round, Rank from, const wire::OpenRound& theirs) {
  const bool given_up = theirs.point_to_point && theirs.failed();
  if (!is_refusal(theirs.failure) && !given_up) compare_tags(now, round, from, theirs.tag);
  if (round.ended) return;
  if (theirs.failed()) return on_peer_failed(now, round, from, theirs);
  if (round.disputed_by != from) return;
  round.disputed_by = kNoRank;
  round.refuted = true;
}

// The collective has failed at the peer. It fails here, too, if the reason is an argument that all
// ranks must give alike. After other failures it goes on with the data that is there.
void Endpoint::on_peer_failed(Instant now, Round& round, Rank from, const wire::OpenRound& theirs) {
  if (!round.done && makes_another_call(theirs.failure)) {
    if (theirs.failure == StatusCode::kMismatch && theirs.about != kNoRank &&
        !round.plan->in_pairs() && theirs.other != round.plan->tag) {
      return finish(now, round,
                    disagree(round, config_.self, theirs.about, theirs.other, config_.names),
                    {theirs.about, theirs.other});
    }
    return finish(
        now, round,
        failed_there(round, config_.self, from, theirs.failure, theirs.about, config_.names),
        {theirs.about != kNoRank ? theirs.about : from, theirs.other});
  }
  Told told{.by = from, .code = theirs.failure, .about = theirs.about};
  if (theirs.point_to_point) told.about = config_.self;
  if (theirs.first < config_.size && theirs.first != config_.self) told.by = theirs.first;
  if (round.told.by == kNoRank) round.told = told;
  if (told.code == StatusCode::kDeadlineExceeded) note_cut(round, from, told.by);
  if (round.plan->stands_in && round.plan->tag.delivery == Delivery::Kind::exact)
    return end_as_told(now, round);
  on_peer_left_round(now, round, from);
}

// Notes why the rest of these flows does not come: a deadline passed at another rank.
void Endpoint::note_cut(Round& round, Rank from, Rank by) {
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active) continue;
    ReceiveFlow& flow = round.receive(static_cast<FlowKind>(k), from);
    if (flow.open() && !flow.abandoned) flow.cut_by = by;
  }
}

// The peer has closed this operation: it wants nothing more from us and will send us nothing more.
void Endpoint::on_peer_left_round(Instant now, Round& round, Rank from) {
  // No later report will tell.
  if (round.plan->confirm_use) round.send(FlowKind::reduce, from).informed = true;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active) continue;
    settle_send(round, static_cast<FlowKind>(k), from);
    ReceiveFlow& flow = round.receive(static_cast<FlowKind>(k), from);
    if (flow.open() && !flow.abandoned) {
      flow.abandoned = true;
      flow.tries = 0;
      timers_.arm_link(from, now + links_[from].quiet_time(round.plan->phases[k].gives_up()));
    }
  }
  advance(now, round);
}

void Endpoint::compare_tags(Instant now, Round& round, Rank from,
                            const wire::OperationTag& theirs) {
  // Send and receive are two operations with one tag: `operation` differs by design.
  wire::OperationTag ours = round.plan->tag;
  if (round.plan->point_to_point()) {
    const bool sends = round.plan->point_send;
    const std::uint64_t sent = sends ? ours.count : theirs.count;
    const std::uint64_t room = sends ? theirs.count : ours.count;
    ours.operation = theirs.operation;
    ours.count = theirs.count;
    if (ours == theirs && sent > room) {
      return doom(
          now, round,
          too_long(round, sends ? config_.self : from, sent, sends ? from : config_.self, room),
          {from});
    }
  }
  if (round.plan->in_pairs()) {
    const std::uint64_t sends = round.plan->pair_sends[from];
    const std::uint64_t expects = round.plan->pair_receives[from];
    wire::tell_pair(expects, sends, ours);  // the tag that they should report
    if (theirs.operation == ours.operation && theirs.shape != 0 && theirs.count != sends)
      return doom(now, round, unequal_pair(round, config_.self, sends, from, theirs.count), {from});
    if (theirs.operation == ours.operation && theirs.shape > 1 && theirs.shape != ours.shape)
      return doom(now, round, unequal_pair(round, from, theirs.shape - 2, config_.self, expects),
                  {from});
  }
  if (ours == theirs) return;
  doom(now, round, disagree(round, config_.self, from, theirs, config_.names), {from, theirs});
}

}  // namespace leeway::protocol
