#include "protocol/report_reader.h"

#include <algorithm>

#include "base/contracts.h"
#include "protocol/mismatch.h"
#include "protocol/report_contents.h"

namespace leeway::protocol {

void ReportReader::on_report(Instant now, Rank from, const wire::Report& report) {
  Link& link = state_.links[from];
  // Numbers are checked before anything in the report is believed, because a made-up one would
  // close the rounds below it.
  if (!progress_.may_have_opened(from, report.opened_below) ||
      after(report.point_opened_below, link.peer_point_opened_below + limits::kMessagesHeardMax)) {
    ++state_.counters.refused_progress;
    return;
  }
  const Duration timeout_before = link.rtt().timeout();
  if (!link.group.on_report(state_.group.sent(), report.group_largest) ||
      !link.on_report(now, path_report(report))) {
    ++state_.counters.refused_report;
    return;
  }
  // Timers that were armed with a longer time-out may be due sooner.
  if (link.rtt().timeout() < timeout_before)
    state_.timers.arm_link(from, now + link.rtt().timeout());
  if (take_opened(from, report)) progress_.on_receives(now, from);
  if (state_.departure.parting() && report.heard_goodbye) state_.departure.on_answer(from);
  if (state_.departure.serving()) {
    const auto open = report.entries();
    const bool waits = !std::all_of(open.begin(), open.end(), [](const wire::OpenRound& entry) {
      const bool received = entry.point_to_point && !entry.sending && entry.spread_settled;
      return entry.failed() || received;
    });
    link.content = !waits && !after(state_.rounds.opened_below(), report.opened_below);
    state_.timers.arm_leave(now);
  }
  progress_.on_collectives(now, from, report.opened_below, link.peer_settled_below);
  hear_failures(from, report);
  if (waits_in_vain(report)) state_.queue_report(from);
  answer_receives(from, report);
  for (Round* round : state_.rounds.with(from)) {
    if (!round->ended) apply_report(now, *round, from, report);
  }
  state_.outbox.queue_data(from);  // credit may have come back
  state_.queue_group();
}

// Returns true if the peer has posted more receives than we knew of. Also notes messages of watched
// tags that it is sending.
bool ReportReader::take_opened(Rank from, const wire::Report& report) {
  Link& link = state_.links[from];
  bool more = after(report.point_opened_below, link.peer_point_opened_below);
  if (more) link.peer_point_opened_below = report.point_opened_below;
  for (const wire::OpenRound& entry : report.entries()) {
    if (!entry.point_to_point || !entry.sending) continue;
    if (entry.failure == StatusCode::kMismatch && state_.rounds.messages(from) != nullptr)
      state_.rounds.messages(from)->note_refusal_heard(entry.message_tag, entry.round);
    if (entry.failed()) continue;
    tags_.note(from, entry.message_tag, entry.round);
    if (Round* const receive = state_.rounds.find(FlowKind::point, entry.round, entry.message_tag,
                                                  from, /*as_sender=*/false))
      state_.rounds.messages(from)->mention(*receive);
  }
  const auto said = report.opened_streams();
  if (said.empty()) return more;
  // Streams are remembered even before the first message with this peer. The peer may post its
  // receive before we post our send, and it does not report the receive again before its time-out.
  PeerMessages& messages = state_.rounds.make_messages(from);
  messages.remember(said);
  for (const wire::OpenedStream& opened : said) {
    MessageStream* const stream = messages.find(opened.tag);
    if (stream != nullptr) more |= messages.mention_sends(*stream, opened.opened_below);
  }
  return more;
}

// Returns true if the peer waits for packets of a collective that we have given up. Unless we tell
// it, it waits until its deadline. It would then open the next collective only when we give that
// one up, too, and the two ranks would never meet again.
bool ReportReader::waits_in_vain(const wire::Report& report) const {
  const auto listed = report.entries();
  return std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& theirs) {
    if (theirs.point_to_point || !state_.rounds.may_have_given_up(theirs.round)) return false;
    if (theirs.reduce_settled && theirs.spread_settled) return false;
    const auto open = state_.rounds.collectives();
    return std::none_of(open.begin(), open.end(), [&](const Round* round) {
      return !round->ended && round->number == theirs.round;
    });
  });
}

// Answers a peer that waits for messages that have ended here. The peer did not hear that they were
// given up, or posted its receives later.
void ReportReader::answer_receives(Rank from, const wire::Report& report) {
  PeerMessages* const messages = state_.rounds.messages(from);
  if (messages == nullptr) return;
  for (const wire::OpenRound& entry : report.entries()) {
    if (!entry.point_to_point || entry.sending || entry.spread_settled) continue;
    const MessageStream* const stream = messages->find(entry.message_tag);
    if (stream == nullptr || !after(stream->sends_opened, entry.round)) continue;
    if (stream->sends.find(entry.round) != nullptr) continue;
    messages->give_up(entry.message_tag, entry.round);
    state_.queue_report(from);
  }
}

void ReportReader::hear_failures(Rank from, const wire::Report& report) {
  for (const wire::OpenRound& entry : report.entries()) {
    // A lossy call that ended by its deadline need not be noted. Once the call is open here,
    // another report tells of its end.
    const bool again = entry.tag.delivery != Delivery::Kind::exact &&
                       entry.failure == StatusCode::kDeadlineExceeded;
    if (entry.failed() && !entry.point_to_point && !again &&
        !after(state_.rounds.opened_below(), entry.round))
      heard_failures_.hear(from, entry);
  }
}

void ReportReader::recall(Instant now, Round& round) {
  const HeardFailures::Heard heard = heard_failures_.take(round.number);
  if (heard.from != kNoRank) on_entry(now, round, heard.from, heard.entry);
}

void ReportReader::apply_report(Instant now, Round& round, Rank from, const wire::Report& report) {
  LEEWAY_ASSERT(!round.ended);
  const bool point = round.plan->point_to_point();
  const auto listed = report.entries();
  const auto theirs = std::find_if(listed.begin(), listed.end(), [&](const wire::OpenRound& entry) {
    return entry.round == round.number && entry.point_to_point == point &&
           (!point || (entry.sending != round.plan->point_send &&
                       entry.message_tag == round.plan->message_tag));
  });
  if (theirs != listed.end()) {
    if (theirs->failed() && !point) learn_use(round, from, report);
    on_entry(now, round, from, *theirs);
    if (theirs->failed() || round.ended || !round.failure.ok()) return;
  }
  // A receive learns nothing else from a report of its sender.
  if (point && !round.plan->point_send) return;
  const auto opened =
      point ? report.messages_opened_below(round.plan->message_tag) : report.opened_below;
  if (!opened || !after(*opened, round.number)) return;  // not opened there yet: nothing to learn
  if (!point && (theirs == listed.end() || theirs->reduce_settled)) learn_use(round, from, report);
  if (theirs == listed.end()) return settling_.on_peer_left_round(now, round, from);
  if (point && theirs->spread_settled) settling_.settle_send(round, FlowKind::point, from);
  if (!point && theirs->reduce_settled && round.plan->phase(FlowKind::reduce).active) {
    settling_.settle_send(round, FlowKind::reduce, from);
  }
  if (!point && theirs->spread_settled && round.plan->phase(FlowKind::spread).active) {
    settling_.settle_send(round, FlowKind::spread, from);
  }
  settling_.advance(now, round);
}

// Notes whether the reporter, which has settled our flow of this reduction, used the flow.
void ReportReader::learn_use(Round& round, Rank from, const wire::Report& report) {
  if (!round.plan->phase(FlowKind::reduce).active) return;
  SendFlow& flow = round.send(FlowKind::reduce, from);
  flow.informed = true;
  // `missed` stays set once it is set, because an overtaken report must not take it back.
  flow.missed |= flow.packets > 0 && report.missed_round(round.number);
}

void ReportReader::on_entry(Instant now, Round& round, Rank from, const wire::OpenRound& theirs) {
  // The entries of a refused call and of a message given up at its deadline have no tag to compare.
  const bool given_up = theirs.point_to_point && theirs.failure == StatusCode::kDeadlineExceeded;
  if (!is_refusal(theirs.failure) && !given_up) compare_tags(now, round, from, theirs.tag);
  if (round.ended || !round.failure.ok()) return;
  if (theirs.failed()) return on_peer_failed(now, round, from, theirs);
  if (round.disputed_by != from) return;
  round.disputed_by = kNoRank;
  round.refuted = true;
}

// Handles a round that has failed at the peer. It fails here, too, if the two ranks make different
// calls (makes_another_call()), or if it is an exact stand-in. Otherwise it goes on without further
// data from the peer.
void ReportReader::on_peer_failed(Instant now, Round& round, Rank from,
                                  const wire::OpenRound& theirs) {
  if (!round.done && makes_another_call(theirs.failure)) {
    if (theirs.failure == StatusCode::kMismatch && theirs.about != kNoRank &&
        !round.plan->in_pairs() && theirs.other != round.plan->tag) {
      return settling_.finish(now, round,
                              disagree(state_.config, round, theirs.about, theirs.other),
                              {theirs.about, theirs.other});
    }
    // If a rank refused its own call, this rank tells its peers of that rank, not of itself.
    const bool refusal = is_refusal(theirs.failure);
    const Rank about = theirs.about != kNoRank ? theirs.about : from;
    return settling_.finish(
        now, round,
        failed_there(state_.config, round, refusal ? about : from, theirs.failure, theirs.about),
        {.rank = about, .tag = theirs.other, .told = refusal ? theirs.failure : StatusCode::kOk});
  }
  Told told{.by = from, .code = theirs.failure, .about = theirs.about};
  if (theirs.point_to_point) told.about = state_.config.self;
  if (theirs.first < state_.config.size && theirs.first != state_.config.self)
    told.by = theirs.first;
  if (round.told.by == kNoRank) round.told = told;
  if (told.code == StatusCode::kDeadlineExceeded) note_cut(round, from, told.by);
  if (round.plan->stands_in && round.plan->tag.delivery == Delivery::Kind::exact)
    return settling_.end_as_told(now, round);
  settling_.on_peer_left_round(now, round, from);
}

// Notes that a deadline at rank `by` is the reason why no more packets come from this peer.
void ReportReader::note_cut(Round& round, Rank from, Rank by) {
  for (const FlowKind kind : round.plan->active_kinds()) {
    ReceiveFlow& flow = round.receive(kind, from);
    if (flow.open() && !flow.abandoned) flow.cut_by = by;
  }
}

void ReportReader::compare_tags(Instant now, Round& round, Rank from,
                                const wire::OperationTag& theirs) {
  // A send and its receive have tags that differ in `operation`, and may differ in `count`.
  wire::OperationTag ours = round.plan->tag;
  if (round.plan->point_to_point()) {
    const bool sends = round.plan->point_send;
    const std::uint64_t sent = sends ? ours.count : theirs.count;
    const std::uint64_t room = sends ? theirs.count : ours.count;
    ours.operation = theirs.operation;
    ours.count = theirs.count;
    if (ours == theirs && sent > room) {
      return settling_.doom(now, round,
                            too_long(round, sends ? state_.config.self : from, sent,
                                     sends ? from : state_.config.self, room),
                            {from});
    }
  }
  if (round.plan->in_pairs()) {
    const std::uint64_t sends = round.plan->pair_sends[from];
    const std::uint64_t expects = round.plan->pair_receives[from];
    wire::tell_pair(expects, sends, ours);  // the tag that they should report
    if (theirs.operation == ours.operation && theirs.shape != 0 && theirs.count != sends)
      return settling_.doom(
          now, round, unequal_pair(round, state_.config.self, sends, from, theirs.count), {from});
    if (theirs.operation == ours.operation && theirs.shape > 1 && theirs.shape != ours.shape)
      return settling_.doom(
          now, round, unequal_pair(round, from, theirs.shape - 2, state_.config.self, expects),
          {from});
  }
  if (ours == theirs) return;
  settling_.doom(now, round, disagree(state_.config, round, from, theirs), {from, theirs});
}

}  // namespace leeway::protocol
