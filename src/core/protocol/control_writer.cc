#include "protocol/control_writer.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "protocol/report_contents.h"

namespace leeway::protocol {

bool ControlWriter::poll(Instant now, TrainBuffer& out) {
  if (state_.group.probe_due()) {
    state_.group.on_probed();
    ++state_.counters.probes_sent;
    out.start(kEveryRank);
    write_bare(now, wire::PacketType::probe, kEveryRank, out);
    return true;
  }
  while (const auto peer = state_.outbox.next_control()) {
    state_.start_train(*peer, out);
    if (write(now, *peer, out)) return true;
  }
  return false;
}

// Writes one kind of the link's pending control datagrams. Queues the link again if more are left.
bool ControlWriter::write(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  LEEWAY_ASSERT(link.gone || !link.dead);
  if (link.dead) {
    if (!std::exchange(link.given_up_due, false)) return false;
    write_bare(now, wire::PacketType::given_up, peer, out);
    return true;
  }
  for (Round* at : state_.rounds.with(peer)) {
    Round& round = *at;
    for (const FlowKind kind : round.plan->active_kinds()) {
      if (round.phase(kind).receives_open > 0 && round.receive(kind, peer).request_due &&
          write_repair_request(now, peer, round, kind, out)) {
        state_.outbox.queue_control(peer);
        return true;
      }
      if (round.phase(kind).sends_open > 0 && round.send(kind, peer).end_due) {
        write_end(now, peer, round, kind, out);
        state_.outbox.queue_control(peer);
        return true;
      }
    }
  }
  if (state_.departure.parting() && !link.gone) {
    return write_last_report(now, peer, out) || write_farewell(now, peer, out);
  }
  if (link.report_due) {
    // A later report makes up for a lost one. So copies are worth it only if the peer may be
    // waiting for this report: it has flows that were settled, or has said good-bye.
    const int usual = link.unreported_settles > 0 || link.gone ? link.copies() : 1;
    const int wanted = std::exchange(link.report_copies, 0);
    const int more = state_.outbox.data_empty() ? std::min(wanted, Path::kCopiesMax) : 1;
    const int times = std::max(usual, more);
    const PeerMessages::Listed listed = write_report(now, peer, out);
    for (int copy = 1; copy < times && out.fits(out.segment_bytes()); ++copy)
      write_report(now, peer, out);
    if (PeerMessages* const messages = state_.rounds.messages(peer)) messages->rotate(listed);
    if (link.probe_due) state_.outbox.queue_control(peer);
    return true;
  }
  if (!link.probe_due) return false;
  link.probe_due = false;
  ++state_.counters.probes_sent;
  for (int copy = 0; copy < link.copies(); ++copy)
    write_bare(now, wire::PacketType::probe, peer, out);
  return true;
}

void ControlWriter::write_bare(Instant now, wire::PacketType type, Rank to, TrainBuffer& out) {
  out.append(wire::encode_bare(state_.prefix(type, to, now), out.scratch(wire::kPrefixBytes)), {});
}

PeerMessages::Listed ControlWriter::write_report(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  const auto [report, listed] =
      report_contents(now, peer, link, state_.rounds, failures_, state_.config.datagram_bytes);
  if (PeerMessages* const messages = state_.rounds.messages(peer)) messages->reported_at = now;
  link.report_due = false;
  link.report_at = Instant::infinite_future();
  link.answer_at = Instant::infinite_future();
  link.unreported_settles = 0;
  link.point_unreported = false;
  link.on_reported();
  ++state_.counters.reports_sent;
  const auto scratch = out.scratch(wire::report_bytes(report));
  out.append(
      wire::encode_report(state_.prefix(wire::PacketType::report, peer, now), report, scratch), {});
  return listed;
}

// Returns the number of copies of a control datagram after `tries` tries without an answer. Control
// goes ahead of data, so on a slow link copies could use up all that the pacer allows, and no data
// would leave. Therefore tries add copies only while no data is queued.
int ControlWriter::copies(Rank peer, std::uint32_t tries) const {
  return state_.links[peer].copies(state_.outbox.data_empty() ? tries : 0);
}

// Writes a request for missing packets: as many words of the bitmap as one datagram holds. Returns
// false if no packet is wanted any more.
bool ControlWriter::write_repair_request(Instant now, Rank peer, Round& round, FlowKind kind,
                                         TrainBuffer& out) {
  constexpr std::size_t kWordsMax = 512;
  std::array<std::uint64_t, kWordsMax> words;
  const std::size_t room =
      (state_.config.datagram_bytes - wire::kRepairFixedBytes) / sizeof(std::uint64_t);
  wire::Repair repair{.round = round.number, .kind = kind, .message_tag = round.plan->message_tag};
  ReceiveFlow& flow = round.receive(kind, peer);
  LEEWAY_ASSERT(flow.open() && flow.request_due);
  const PhasePlan& plan = round.plan->phase(kind);
  const bool all = !plan.gives_up() || (plan.fetch_empty && flow.first_pass_lost());
  const bool answered = flow.ended_pass >= flow.awaited_pass();
  const std::size_t count =
      flow.next_request(all, std::span(words).first(std::min(kWordsMax, room)), repair);
  if (count == 0) return false;
  const std::size_t bytes = wire::kRepairFixedBytes + count * sizeof(std::uint64_t);
  const std::uint32_t unanswered = answered || flow.tries == 0 ? 0 : flow.tries - 1;
  for (int copy = copies(peer, unanswered); copy > 0 && out.fits(bytes); --copy) {
    ++state_.counters.requests_sent;
    out.append(wire::encode_repair(state_.prefix(wire::PacketType::repair, peer, now), repair,
                                   std::span(words).first(count), out.scratch(bytes)),
               {});
  }
  return true;
}

// WIRE 6.4: one report goes ahead of the good-bye if it tells of messages that did not match or
// were given up. Otherwise the peer's receives of these messages would fail with the good-bye as
// their reason.
bool ControlWriter::write_last_report(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  PeerMessages* const messages = state_.rounds.messages(peer);
  if (!link.report_due || link.last_report_sent || messages == nullptr ||
      state_.departure.said_goodbye(peer))
    return false;
  if (messages->given_up().empty() && messages->refused().empty()) return false;
  link.last_report_sent = true;
  messages->rotate(write_report(now, peer, out));
  link.report_due = true;  // for the good-bye, which follows
  state_.outbox.queue_control(peer);
  return true;
}

// Sends the good-bye in place of any other control datagram (WIRE 6.4). After it, the peer waits
// for nothing more from this rank.
bool ControlWriter::write_farewell(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  const int copies = state_.departure.take_copies(peer, link.report_due, link.copies());
  link.report_due = link.probe_due = false;
  link.on_reported();
  for (int copy = 0; copy < copies; ++copy) write_bare(now, wire::PacketType::goodbye, peer, out);
  return copies > 0;
}

void ControlWriter::write_end(Instant now, Rank peer, Round& round, FlowKind kind,
                              TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  LEEWAY_ASSERT(flow.open());
  flow.end_due = false;
  // A peer that has not opened the operation is late. Its silence is no sign that ENDs are lost, so
  // it gets no extra copies.
  const int times = copies(peer, state_.gate_open(round, peer) ? flow.end_tries : 0);
  flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);  // all copies: one try
  state_.timers.arm_link(peer, flow.end_at);
  const wire::End end{.round = round.number,
                      .kind = kind,
                      .attempt = flow.pass,
                      .flow_packets = flow.packets,
                      .weight = flow.weight,
                      .tail = flow.grid.tail(),
                      .message_tag = round.plan->message_tag,
                      .tag_digest = round.tag_digest};
  for (int copy = 0; copy < times && out.fits(wire::kEndBytes); ++copy) {
    ++state_.counters.ends_sent;
    out.append(wire::encode_end(state_.prefix(wire::PacketType::end, peer, now), end,
                                out.scratch(wire::kEndBytes)),
               {});
  }
}

}  // namespace leeway::protocol
