// Rounds: opening, settling, finishing. Leaving the group.
#include "protocol/endpoint.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/philox.h"
#include "protocol/awaited.h"

namespace leeway::protocol {
namespace {

// Stream tags of the keyed permutations. They keep permutations from sharing random numbers with
// codecs or faults.
constexpr std::uint32_t kRotationStream = 0x50000000;
constexpr std::uint32_t kInnerStream = 0x60000000;

}  // namespace

Endpoint::Endpoint(const EndpointConfig& config) : Endpoint(config, {}) {}

Endpoint::Endpoint(const EndpointConfig& config, std::span<Path* const> paths)
    : config_(config),
      own_paths_(paths.empty() ? config.size : 0),
      links_(config.size),
      rounds_(config.size),
      outbox_(config.size),
      group_(config.multicast, links_),
      early_(config.size, config.datagram_bytes),
      timers_(config.size) {
  LEEWAY_ASSERT(config.size >= 1 && config.size <= limits::kPeersMax && config.self < config.size);
  LEEWAY_ASSERT(config.datagram_bytes >= limits::kDatagramBytesMin);
  LEEWAY_ASSERT(config.datagram_bytes <= limits::kDatagramBytesMax);
  LEEWAY_ASSERT(static_cast<int>(config.window_bytes.size()) == config.size);
  for (Rank peer = 0; peer < config.size; ++peer) {
    Path& path = paths.empty() ? own_paths_[peer] : *paths[peer];
    const std::size_t window = config.window_bytes[peer] / config.datagram_bytes;
    const std::size_t peers_window = config.peers_window_bytes / config.datagram_bytes;
    const std::size_t window_most =
        config.window_bytes[peer] / std::min(config.datagram_bytes, path.size.base());
    path.configure(static_cast<std::uint32_t>(window), config.rtt_initial,
                   static_cast<std::uint32_t>(peers_window),
                   static_cast<std::uint32_t>(window_most));
    links_[peer].attach(path);
    if (peer == config.self || !path.dead()) continue;
    links_[peer].gone = links_[peer].dead = any_gone_ = true;
  }
}

void Endpoint::keep_intact(std::vector<std::uint8_t> by_rank) {
  LEEWAY_ASSERT(open_rounds() == 0);
  config_.intact = std::move(by_rank);
}

void Endpoint::shorten_datagrams(std::size_t bytes) {
  LEEWAY_ASSERT(bytes >= limits::kDatagramBytesMin && bytes <= config_.datagram_bytes);
  LEEWAY_ASSERT(open_rounds() == 0 && counters_.rounds_opened == 0);
  config_.datagram_bytes = bytes;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self) continue;
    links_[peer].path().widen(static_cast<std::uint32_t>(config_.window_bytes[peer] / bytes),
                              static_cast<std::uint32_t>(config_.peers_window_bytes / bytes));
  }
}

Round* Endpoint::open_round(Instant now, const RoundPlan& plan, RoundClient& client) {
  const bool idle_before = idle();
  const std::uint32_t next = rounds_.opened_below();
  Round* const round = rounds_.open(plan, client, now);
  if (round == nullptr) return nullptr;
  if (!plan.point_to_point() && round->number != next) early_.skip_collectives_below(round->number);
  if (idle_before) busy_since_ = now;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (plan.phases[k].active) set_up_flows(*round, static_cast<FlowKind>(k));
  }
  ++counters_.rounds_opened;
  return round;
}

void Endpoint::start(Instant now, Round& round) {
  if (round.plan->point_to_point()) {
    const MessageList& list = round.stream->list_of(round);
    timers_.arm_link(round.plan->point_peer, round.plan->deadline);
    if (list.size() <= limits::kTalkingMessagesMax) start_talking(now, round);
  } else {
    // Destinations are taken in the order after our own rank, so that no receiver is everybody's
    // first.
    bool strangers = false;
    for (int step = 1; step < config_.size; ++step) {
      const auto peer = static_cast<Rank>((config_.self + step) % config_.size);
      start_towards(round, peer);
      strangers = strangers || !round.exchanges_with(peer);
    }
    queue_group();
    if (round.plan->needs_every_rank && strangers) arm_inquiry(now, round);
    timers_.arm_round(round, round.plan->deadline);
    for (const PhasePlan& phase : round.plan->phases) {
      if (phase.active) timers_.arm_round(round, phase.deadline);
    }
    for (Rank peer = 0; peer < config_.size; ++peer) {
      timers_.arm_link(peer, now + links_[peer].rtt().timeout());
      if (peer != config_.self) watch(now, peer);
    }
  }
  replay_early(now, round);
  if (!round.plan->point_to_point() && !round.ended) {
    const HeardFailures::Heard heard = heard_failures_.take(round.number);
    if (heard.from != kNoRank) on_entry(now, round, heard.from, heard.entry);
  }
  if (any_gone_) start_without(now, round);
  rounds_.refresh_settled_below();
  advance(now, round);
  reap(now);
}

void Endpoint::start_towards(Round& round, Rank peer) {
  bool sends = false;
  bool receives = false;
  bool needs_gate = false;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active) continue;
    const auto kind = static_cast<FlowKind>(k);
    sends |= round.send(kind, peer).open();
    receives |= round.receive(kind, peer).open();
    needs_gate |= round.receive(kind, peer).packets > limits::kEagerPackets;
  }
  if (sends) {
    if (!gate_open(round, peer)) ++round.gates_closed;
    outbox_.queue_data(peer);
  }
  // WIRE 3.3: announces that the operation is open here. A peer that is sent data in either half
  // learns it from the data. If those eager packets are lost, the time-outs of both sides make up:
  // ours sends this report, and the sender repeats its END.
  if (needs_gate || (receives && !sends)) queue_report(peer);
}

// The message is now among the oldest of its direction. From now on it is listed, sent and asked
// for.
void Endpoint::start_talking(Instant now, Round& message) {
  start_towards(message, message.plan->point_peer);
  const Rank peer = message.plan->point_peer;
  timers_.arm_link(peer, now + links_[peer].rtt().timeout());
  watch(now, peer);
}

void Endpoint::set_up_flows(Round& round, FlowKind kind) {
  for (Rank peer = round.first_peer(); peer < round.end_peer(config_.size); ++peer) {
    if (peer == config_.self) {
      round.send(kind, peer) = SendFlow{};
      round.receive(kind, peer) = ReceiveFlow{};
      continue;
    }
    set_up_send(round, kind, peer);
    set_up_receive(round, kind, peer);
  }
  PhaseState& phase = round.phase(kind);
  if (!round.plan->point_to_point() && group_.form(phase, round.plan->phase(kind)))
    phase.group.cursor =
        make_cursor(round, kind, kEveryRank, phase.send[phase.group.first_member].grid);
}

void Endpoint::set_up_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  Bitmap wanted = std::move(flow.wanted);  // reuses their memory
  Bitmap left = std::move(flow.left);
  flow = SendFlow{};
  flow.wanted = std::move(wanted);
  flow.left = std::move(left);
  flow.left.resize(0);
  flow.grid = round.client->outgoing(kind, peer);
  flow.packets = flow.grid.packets();
  flow.weight = static_cast<float>(round.plan->weight_for(peer));
  if (flow.packets == 0) return;
  if (links_[peer].gone) {
    flow.settled = true;
    return;
  }
  ++round.phase(kind).sends_open;
  ++round.phase(kind).passes_open;
  if (round.plan->phase(kind).repairable) flow.wanted.resize(flow.packets);
  if (may_be_coded(round, kind, flow.packets)) flow.left.resize(flow.packets);
  flow.cursor = make_cursor(round, kind, peer, flow.grid);
}

schedule::PacketCursor Endpoint::make_cursor(const Round& round, FlowKind kind, Rank to,
                                             const schedule::PacketGrid& grid) const {
  const bool to_owner = kind == FlowKind::reduce;
  const schedule::PacketCursor::Keys keys{
      rotation_key(round.number, kind, to_owner ? to : config_.self),
      inner_key(round.number, kind, config_.self, to)};
  const PhasePlan& phase = round.plan->phase(kind);
  return schedule::PacketCursor(grid, keys, phase.queue,
                                phase.ready.empty() ? nullptr : &phase.ready[to]);
}

std::uint64_t Endpoint::rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const {
  if (!config_.permute) return schedule::PacketCursor::kInOrder;
  return keyed_hash(config_.seed, number, kRotationStream | static_cast<std::uint32_t>(kind), owner,
                    0);
}

std::uint64_t Endpoint::inner_key(std::uint32_t number, FlowKind kind, Rank from, Rank to) const {
  if (!config_.permute) return schedule::PacketCursor::kInOrder;
  return keyed_hash(config_.seed, number, kInnerStream | static_cast<std::uint32_t>(kind), from,
                    to);
}

void Endpoint::set_up_receive(Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  Bitmap arrived = std::move(flow.arrived);
  Bitmap early = std::move(flow.early);
  auto parity = std::move(flow.parity);
  auto chunks = std::move(flow.chunks);
  flow = ReceiveFlow{};
  flow.arrived = std::move(arrived);
  flow.early = std::move(early);
  const schedule::PacketGrid grid = round.client->incoming(kind, peer);
  flow.packets = grid.packets();
  flow.tail = grid.tail();
  flow.sized = kind != FlowKind::point;
  flow.required = round.client->required(kind, peer);
  flow.last_arrival = round.opened_at;
  if (flow.packets == 0) return;
  flow.arrived.resize(flow.packets);
  if (may_be_coded(round, kind, flow.packets)) {
    flow.parity = parity != nullptr ? std::move(parity) : std::make_unique<ParityLedger>();
    flow.parity->reset(flow.packets);
    flow.chunks = chunks != nullptr ? std::move(chunks) : std::make_unique<ChunkWatch>();
    *flow.chunks = ChunkWatch(grid, inner_key(round.number, kind, peer, config_.self));
    flow.early.resize(flow.packets);
  }
  flow.abandoned = links_[peer].gone;
  ++round.phase(kind).receives_open;
}

void Endpoint::replay_early(Instant now, Round& round) {
  const auto use = [&](Rank from, ByteSpan datagram) {
    wire::DataHeader header;
    ByteSpan payload;
    if (round.ended || wire::decode_data(datagram, header, payload) != wire::Refusal::none) return;
    accept_data(now, round, from, header, payload);
  };
  if (!round.plan->point_to_point()) {
    early_.take_collective(round.number, use);
  } else if (!round.plan->point_send) {
    early_.take_message(round.plan->point_peer, round.plan->message_tag, round.number, use);
  }
}

bool Endpoint::gate_open(const Round& round, Rank peer) const {
  if (round.plan->message_tag != 0) return after(round.stream->peer_opened_below, round.number);
  return links_[peer].has_opened(round.number, round.plan->point_to_point());
}

void Endpoint::release_chunks(Round& round, FlowKind kind) {
  for (int step = 1; step < config_.size; ++step) {
    const Rank peer = static_cast<Rank>((config_.self + step) % config_.size);
    if (round.send(kind, peer).open()) outbox_.queue_data(peer);
  }
  queue_group();
}

void Endpoint::fail(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (!round.ended) finish(now, round, status, blame);
  // A round that never started may have datagrams kept for it. This takes them from the early
  // buffer.
  replay_early(now, round);
  reap(now);
}

void Endpoint::end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame) {
  LEEWAY_ASSERT(round.plan->stands_in);
  if (round.ended) return;
  const Rank absentee = absent(now, config_.self, round, links_);
  const bool late = status.code() == StatusCode::kDeadlineExceeded && absentee != kNoRank;
  finish(now, round, late ? overdue(now, config_.self, round, links_, config_.names) : status,
         late ? Blame{absentee} : blame);
  reap(now);
}

void Endpoint::settle_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  // No more data follows, but an END, which a report answers (WIRE 4.3).
  if (round.awaits_word(kind, flow)) {
    round.phase(kind).set_pass_over(flow, true);
    flow.end_due = true;
    return outbox_.queue_control(peer);
  }
  if (flow.grouped) leave_group(round, kind, peer);
  round.phase(kind).set_pass_over(flow, true);
  flow.settled = true;
  flow.end_due = false;
  --round.phase(kind).sends_open;
}

void Endpoint::finish_receive(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  LEEWAY_ASSERT(flow.open());
  flow.finished = true;
  flow.request_due = false;
  --round.phase(kind).receives_open;
  Link& link = links_[peer];
  if (kind == FlowKind::reduce && flow.arrived_count == 0)
    link.missed.note(round.number, rounds_.opened_below());
  ++link.unreported_settles;
  link.point_unreported |= kind == FlowKind::point;
  if (kind == FlowKind::point) rounds_.messages(peer)->touch(*round.stream);
  // An owner spreads only what it has settled. So its complete shard confirms our part of it,
  // without an acknowledgement.
  if (kind == FlowKind::spread && flow.complete() && round.plan->phase(FlowKind::reduce).active) {
    settle_send(round, FlowKind::reduce, peer);
  }
  // A caller waits for this confirmation, with three exceptions: no packet can be asked for again,
  // a copy of the payload was kept, or our result confirms it.
  const PhasePlan& plan = round.plan->phase(kind);
  const bool result_tells = kind == FlowKind::reduce && round.plan->phase(FlowKind::spread).active;
  const bool awaited = plan.repairable && !plan.payload_retained && !result_tells;
  if (awaited || link.unreported_settles >= 4) {
    queue_report(peer);
  } else {
    link.report_at = std::min(link.report_at, now + 2 * Duration(limits::kTickNs));
    timers_.arm_link(peer, link.report_at);
  }
}

void Endpoint::settle_phase(Instant now, Round& round, FlowKind kind) {
  LEEWAY_ASSERT(!round.phase(kind).settled);
  round.phase(kind).settled = true;
  rounds_.refresh_settled_below();
  round.client->on_settled(kind, now);
}

void Endpoint::advance(Instant now, Round& round) {
  // A message that is to fail does so at fail_at. Its flow's contents were meant for another
  // message.
  if (round.ended || !round.failure.ok() || round.plan->stands_in) return;
  if (round.disputed_by != kNoRank && !round.done) return;  // it ends with an error
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    PhaseState& phase = round.phases[k];
    if (!phase.settled && phase.receives_open == 0)
      settle_phase(now, round, static_cast<FlowKind>(k));
  }
  if (!round.done && round.caller_may_go()) {
    round.done = true;
    round.client->on_done(Status(), now);
  }
  if (round.done && round.all_confirmed()) end(round);
}

void Endpoint::finish(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (!status.ok()) {
    ++counters_.rounds_failed;
    round.blame = blame;
    if (!round.done || status.code() == StatusCode::kMismatch)
      tell_failure(round, status.code(), blame);
  }
  if (!round.done) {
    round.done = true;
    round.client->on_done(status, now);
  }
  end(round);
}

// Not for messages: both sides learn of their failure by other means. Not for a cancelled
// operation: the good-bye says so.
void Endpoint::tell_failure(const Round& round, StatusCode code, const Blame& blame) {
  if (round.plan->point_to_point() || code == StatusCode::kCancelled) return;
  failures_.add(
      {.round = round.number,
       .opened = rounds_.collectives_opened(),
       .tag = round.plan->tag,
       .code = code,
       .about = blame.rank,
       .first = blame.first,
       .other = blame.tag,
       .pair_sends = {round.plan->pair_sends.begin(), round.plan->pair_sends.end()},
       .pair_receives = {round.plan->pair_receives.begin(), round.plan->pair_receives.end()}});
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && !links_[peer].gone) queue_report(peer);
  }
}

void Endpoint::end(Round& round) {
  rounds_.end(round);
  timers_.disarm_round(round);
}

void Endpoint::doom(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (round.ended || !round.failure.ok()) return;
  if (!round.plan->point_to_point()) return finish(now, round, status, blame);
  round.failure = status;
  round.fail_at = now + Duration(limits::kTickNs);
  timers_.arm_round(round, round.fail_at);
  queue_report(round.plan->point_peer);
}

void Endpoint::reap_ended(Instant now) {
  while (rounds_.any_ended()) {
    const RoundTable::Ended taken = rounds_.take_ended();
    if (taken.next != nullptr && !taken.next->ended) {
      start_talking(now, *taken.next);
      timers_.arm_link(taken.next->plan->point_peer, now);
    }
    taken.client->on_closed();
  }
}

void Endpoint::cancel_all(Instant now, const Status& status) {
  const auto cancel = [&](Round& round) {
    if (!round.ended) finish(now, round, status);
  };
  for (Round* round : rounds_.collectives()) cancel(*round);
  for (Rank peer = 0; peer < config_.size; ++peer) {
    const PeerMessages* messages = rounds_.messages(peer);
    if (messages == nullptr) continue;
    messages->for_each_open(cancel);
  }
  reap(now);
}

void Endpoint::probe_all() {
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self) probe(peer);
  }
  group_.probe();
}

void Endpoint::probe(Rank peer) {
  links_[peer].probe_due = true;
  outbox_.queue_control(peer);
}

int Endpoint::peers_proven() const {
  int proven_ones = 0;
  for (Rank peer = 0; peer < config_.size; ++peer) proven_ones += proven(peer) ? 1 : 0;
  return proven_ones;
}

Duration Endpoint::slowest_timeout() const {
  Duration slowest{0};
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && !links_[peer].gone)
      slowest = std::max(slowest, links_[peer].rtt().timeout());
  }
  return slowest;
}

void Endpoint::leave(Instant now) {
  if (!departure_.here()) return;
  departure_.serve(now, slowest_timeout());
  given_up_.ok() ? wake_leave(now) : say_goodbye(now);
}

void Endpoint::say_goodbye(Instant now) {
  departure_.part(now, config_.size);
  cancel_all(now,
             Status::error(StatusCode::kCancelled, "rank %u: communicator closed", config_.self));
  for (Rank peer = 0; peer < config_.size; ++peer) {
    Link& link = links_[peer];
    link.report_at = link.answer_at = link.probe_at = Instant::infinite_future();
    if (peer == config_.self || link.gone) continue;
    using enum Departure::Awaited;
    const auto awaited = !given_up_.ok() ? no : link.heard ? yes : perhaps;
    timers_.arm_link(peer, departure_.owe(now, peer, link.rtt(), awaited));
    outbox_.queue_control(peer);
  }
  group_.stop_probing();
}

bool Endpoint::left() const {
  if (!departure_.parting() || !outbox_.control_empty()) return false;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && !links_[peer].gone && !departure_.parted(peer)) return false;
  }
  return true;
}

}  // namespace leeway::protocol
