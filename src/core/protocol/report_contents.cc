#include "protocol/report_contents.h"

#include <algorithm>
#include <utility>

namespace leeway::protocol {
namespace {

// Entries that a report keeps free for what it lists later (WIRE 3.4). While it lists receives, it
// keeps kForSends free for sends; while it lists refused receives, kForReceives; and so on.
constexpr std::size_t kForSends = 1;
constexpr std::size_t kForReceives = 1 + kForSends;
constexpr std::size_t kForRefused = 1 + kForReceives;
constexpr std::size_t kForGivenUp = 1 + kForRefused;
static_assert(kForGivenUp == limits::kMessageEntries);

// Bytes of `kept` free entries. If one is for a receive, adds the bytes that state its tag.
constexpr std::size_t bytes_of(std::size_t kept) {
  return kept * wire::kOpenMessageBytes + (kept >= kForReceives ? wire::kOpenedStreamBytes : 0);
}

// Fills a report to one peer, as far as there is room.
class Contents {
 public:
  // `refused_listed`: number of refused receives that the report lists already.
  Contents(Rank peer, std::size_t room, wire::Report& report, std::size_t refused_listed = 0)
      : peer_(peer), room_(room), report_(report), refused_listed_(refused_listed) {}

  // Lists a round. Returns false if there is no room for it beside `kept` further entries.
  bool list(const Round& round, std::size_t kept);
  void list_failing(const PeerMessages& messages);
  std::size_t list_given_up(const PeerMessages& messages);
  std::size_t list_refused(const PeerMessages& messages);
  std::size_t list_receives(const PeerMessages& messages);
  std::size_t list_sends(const PeerMessages& messages);
  void list_touched(const PeerMessages& messages);

 private:
  bool fits(std::size_t bytes) const { return wire::report_bytes(report_) + bytes <= room_; }
  bool has_room(std::size_t bytes, std::size_t kept) const {
    return report_.open_count + kept < report_.open.size() && fits(bytes + bytes_of(kept));
  }
  bool says(const MessageStream& stream) const;
  bool lists(const Round& receive) const;
  std::size_t list_stream(const PeerMessages& messages, const MessageStream& stream,
                          std::size_t kept);

  const Rank peer_;
  const std::size_t room_;
  wire::Report& report_;
  std::size_t refused_listed_;
};

bool Contents::list(const Round& round, std::size_t kept) {
  const bool point = round.plan->point_to_point();
  if (!has_room(point ? wire::kOpenMessageBytes : wire::kOpenRoundBytes, kept)) return false;
  wire::OpenRound& entry = report_.open[report_.open_count++];
  entry = {.round = round.number,
           .point_to_point = point,
           .sending = round.plan->point_send,
           .message_tag = round.plan->message_tag,
           .tag = round.plan->tag};
  if (round.plan->in_pairs())
    wire::tell_pair(round.plan->pair_sends[peer_], round.plan->pair_receives[peer_], entry.tag);
  const auto settled = [&](FlowKind kind) {
    // A stand-in may still become its operation (Endpoint::reopen_round()), which then wants the
    // flow.
    if (round.plan->stands_in) return false;
    if (!round.plan->phase(kind).active) return true;
    const ReceiveFlow& flow = round.receive(kind, peer_);
    // WIRE 3.4: an abandoned flow counts as settled, so that the peer does not answer this report.
    return !flow.open() || flow.abandoned;
  };
  entry.reduce_settled = settled(FlowKind::reduce);
  entry.spread_settled = settled(point ? FlowKind::point : FlowKind::spread);
  return true;
}

// Lists messages that are about to fail, because both sides must learn of the failure (WIRE 3.5).
void Contents::list_failing(const PeerMessages& messages) {
  for (const Round* message : messages.talking()) {
    if (!message->failure.ok()) list(*message, kForRefused);
  }
}

// Lists sends that were given up here. The peer's receives wait for them, and only this list tells
// the peer (WIRE 3.17). Returns how many it listed.
std::size_t Contents::list_given_up(const PeerMessages& messages) {
  std::size_t listed = 0;
  for (const PeerMessages::GivenUp& one : messages.given_up()) {
    if (!has_room(wire::kOpenMessageBytes, kForRefused)) break;
    ++listed;
    wire::OpenRound& entry = report_.open[report_.open_count++];
    entry = {.round = one.number,
             .point_to_point = true,
             .sending = true,
             .message_tag = one.tag,
             .failure = StatusCode::kDeadlineExceeded};
    if (one.unmatched) {
      entry.tag = *one.unmatched;
      entry.failure = StatusCode::kMismatch;
    }
  }
  return listed;
}

// Lists receives that failed because their messages do not match. The sender compares the tags, so
// its send fails just as if the receive were still open (WIRE 3.5). Returns how many it listed.
std::size_t Contents::list_refused(const PeerMessages& messages) {
  for (const PeerMessages::GivenUp& one : messages.refused()) {
    if (!has_room(wire::kOpenMessageBytes, kForReceives)) break;
    ++refused_listed_;
    report_.open[report_.open_count++] = {.round = one.number,
                                          .point_to_point = true,
                                          .spread_settled = true,
                                          .message_tag = one.tag,
                                          .tag = *one.unmatched};
  }
  return refused_listed_;
}

// Lists posted receives of a tag, oldest first. Returns how many it listed. If a receive finds no
// room, the report tells the peer that this receive has not been posted yet (WIRE 3.4).
std::size_t Contents::list_stream(const PeerMessages& messages, const MessageStream& stream,
                                  std::size_t kept) {
  const MessageList& receives = stream.receives;
  const std::uint32_t end =
      messages.unlisted_below(stream.tag, refused_listed_, stream.receives_opened);
  wire::OpenedStream* said = nullptr;
  if (stream.tag != 0) {
    if (report_.stream_count == limits::kListedStreamsMax || !fits(wire::kOpenedStreamBytes))
      return 0;
    said = &report_.streams[report_.stream_count++];
  }
  std::size_t listed = 0;
  while (listed < receives.foremost() && after(end, receives[listed].number) &&
         (lists(receives[listed]) || list(receives[listed], kept))) {
    ++listed;
  }
  std::uint32_t opened_below = end;
  if (listed < receives.size() && after(end, receives[listed].number))
    opened_below = receives[listed].number;
  if (said == nullptr) {
    report_.point_opened_below = opened_below;
  } else {
    *said = {.tag = stream.tag, .opened_below = opened_below};
  }
  return listed;
}

bool Contents::says(const MessageStream& stream) const {
  const auto said = report_.opened_streams();
  return std::any_of(said.begin(), said.end(),
                     [&](const wire::OpenedStream& other) { return other.tag == stream.tag; });
}

// Returns true if the report lists this receive already, because it is about to fail.
bool Contents::lists(const Round& receive) const {
  if (receive.failure.ok()) return false;
  const auto listed = std::as_const(report_).entries();
  return std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& entry) {
    return entry.point_to_point && !entry.sending && entry.round == receive.number &&
           entry.message_tag == receive.plan->message_tag;
  });
}

// Lists the receives that talk, tag by tag, beginning where the last report ended. Keeps room for
// one send, because a peer that receives from any rank must hear of sends. Returns how many places
// of talking() it passed.
std::size_t Contents::list_receives(const PeerMessages& messages) {
  const auto talking = messages.talking();
  const std::size_t kept = messages.sending().empty() ? 0 : kForSends;
  bool says_zero = false;
  std::size_t passed = 0;
  for (; passed < talking.size() && has_room(wire::kOpenMessageBytes, kept); ++passed) {
    const Round& message = *talking[(messages.report_from().receives + passed) % talking.size()];
    if (message.plan->point_send) continue;
    const MessageStream& stream = *message.stream;
    const Round& oldest = stream.receives[0];
    if (&message != &oldest && (oldest.talks || says(stream))) continue;
    const bool refused =
        messages.unlisted_below(stream.tag, refused_listed_, oldest.number) != oldest.number;
    if (list_stream(messages, stream, kept) == 0 && !refused) break;
    says_zero |= stream.tag == 0;
  }
  // Every report counts the posted receives of tag 0, and those without an entry count as ended.
  // So they are listed here if they were not above.
  if (!says_zero) list_stream(messages, *messages.find(0), kept);
  return passed;
}

// Lists sends, the oldest of each tag first, beginning behind the tags in the last report. Returns
// how many tags it passed.
std::size_t Contents::list_sends(const PeerMessages& messages) {
  const auto sending = messages.sending();
  bool more = true;
  for (std::size_t place = 0; std::exchange(more, false); ++place) {
    for (std::size_t i = 0; i < sending.size(); ++i) {
      const MessageList& sends =
          sending[(messages.report_from().sends + i) % sending.size()]->sends;
      if (place >= sends.foremost()) continue;
      if (sends[place].failure.ok() && !list(sends[place], 0))
        return place == 0 ? i : sending.size();
      more = true;
    }
  }
  return sending.size();
}

// Lists streams whose messages ended recently, because their sender may not know that yet.
void Contents::list_touched(const PeerMessages& messages) {
  for (const MessageStream* stream : messages.touched()) {
    if (says(*stream)) continue;
    if (report_.stream_count == report_.streams.size() || !fits(wire::kOpenedStreamBytes)) return;
    const std::uint32_t opened_below =
        stream->receives.empty() ? stream->receives_opened : stream->receives[0].number;
    report_.streams[report_.stream_count++] = {
        .tag = stream->tag,
        .opened_below = messages.unlisted_below(stream->tag, refused_listed_, opened_below)};
  }
}

}  // namespace

wire::Report path_counts(const Path& path) {
  wire::Report report;
  report.largest_sequence = path.largest_seen();
  report.received = path.received();
  report.received_bytes = path.received_bytes();
  report.arrived_us = wire::arrived_us(path.largest_arrived_at());
  report.ect = path.ect();
  report.ce = path.ce();
  report.grant = path.grant();
  report.host_drops = path.host_drops();
  return report;
}

PathReport path_report(const wire::Report& report) {
  return {.largest_sequence = report.largest_sequence,
          .received = report.received,
          .received_bytes = report.received_bytes,
          .arrived_us = report.arrived_us,
          .ect = report.ect,
          .ce = report.ce,
          .grant = report.grant,
          .host_drops = report.host_drops,
          .delay = std::chrono::microseconds(report.delay_us)};
}

ReportContents report_contents(Instant now, Rank peer, const Link& link, const RoundTable& rounds,
                               const Failures& failures, std::size_t room) {
  ReportContents made{.report = path_counts(link.path()), .listed = {}};
  wire::Report& report = made.report;
  report.delay_us = static_cast<std::uint32_t>(link.path().since_largest(now).count() / 1000);
  report.opened_below = rounds.opened_below();
  report.point_opened_below = rounds.receives_opened(peer, 0);
  report.group_largest = link.group.largest_seen();
  report.heard_goodbye = link.gone;
  report.missed = link.missed.bits(rounds.opened_below());
  const PeerMessages* messages = rounds.messages(peer);
  const bool touched = messages != nullptr && !messages->touched().empty();
  const std::size_t usual_room = room - (touched ? wire::kOpenedStreamBytes : 0);
  Contents contents(peer, usual_room, report);
  for (const Round* round : rounds.collectives()) contents.list(*round, kForGivenUp);
  // Failures go before messages: a collective that a report leaves out counts as ended without
  // error.
  const auto list_failures = [&](std::size_t kept) {
    failures.list(peer, rounds.collectives_opened(), report.open.size() - kept,
                  usual_room - bytes_of(kept), report);
  };
  list_failures(kForGivenUp);
  if (messages != nullptr) {
    contents.list_failing(*messages);
    made.listed.given_up = contents.list_given_up(*messages);
    made.listed.refused = contents.list_refused(*messages);
    made.listed.receives = contents.list_receives(*messages);
    // Our sends are listed last, because the peer can do without hearing of them, or ask again.
    made.listed.sends = contents.list_sends(*messages);
  }
  list_failures(0);
  if (messages != nullptr)
    Contents(peer, room, report, made.listed.refused).list_touched(*messages);
  return made;
}

}  // namespace leeway::protocol
