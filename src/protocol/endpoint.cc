// Rounds: opening, settling, finishing.
#include "protocol/endpoint.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::protocol {
namespace {

// Stream tags of the keyed permutations, so that they share no random numbers with codecs or
// faults.
constexpr std::uint32_t kRotationStream = 0x50000000;
constexpr std::uint32_t kInnerStream = 0x60000000;

}  // namespace

std::uint64_t Endpoint::early_key(bool point, Rank from, std::uint32_t number) {
  return (point ? (std::uint64_t{1} << 63) | (std::uint64_t{from} << 32) : 0) | number;
}

Endpoint::Endpoint(const EndpointConfig& config)
    : config_(config),
      links_(config.size),
      control_links_(config.size),
      data_links_(config.size + 1),
      early_(config.size, limits::kEarlySlotsPerPeer, config.datagram_bytes),
      heard_(config.size, false) {
  LEEWAY_ASSERT(config.size >= 1 && config.size <= limits::kPeersMax && config.self < config.size);
  LEEWAY_ASSERT(config.datagram_bytes >= limits::kDatagramBytesMin);
  LEEWAY_ASSERT(config.datagram_bytes <= limits::kDatagramBytesMax);
  LEEWAY_ASSERT(static_cast<int>(config.window_bytes.size()) == config.size);
  for (Rank peer = 0; peer < config.size; ++peer) {
    const std::size_t window = config.window_bytes[peer] / config.datagram_bytes;
    links_[peer].configure(static_cast<std::uint32_t>(window), config.rtt_initial);
  }
}

std::uint32_t Endpoint::take_number(const RoundPlan& plan) {
  if (!plan.point_to_point()) return opened_below_++;
  Link& link = links_[plan.point_peer];
  return plan.point_send ? link.sends_opened++ : link.receives_opened++;
}

Round* Endpoint::open_round(Instant now, const RoundPlan& plan, RoundClient& client) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [](const auto& round) {
    return !round || round->client == nullptr;
  });
  if (slot == slots_.end()) return nullptr;
  if (!*slot) *slot = std::make_unique<Round>();
  if (open_count_ == 0) {
    for (Link& link : links_) link.gap.pause();
  }
  Round& round = **slot;
  round.reset(take_number(plan), plan, &client, config_.size, now);
  open_[open_count_++] = &round;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (plan.phases[k].active) set_up_flows(round, static_cast<FlowKind>(k));
  }
  ++counters_.rounds_opened;
  return &round;
}

void Endpoint::start(Instant now, Round& round) {
  // Destinations are taken in the order after our own rank, so that no receiver is everybody's
  // first.
  for (int step = 1; step < config_.size; ++step) {
    const Rank peer = static_cast<Rank>((config_.self + step) % config_.size);
    bool sends = false;
    bool needs_gate = false;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round.plan.phases[k].active) continue;
      sends |= round.phases[k].send[peer].open();
      needs_gate |= round.phases[k].receive[peer].packets > limits::kEagerPackets;
      needs_gate |= round.phases[k].receive[peer].open() && !round.phases[k].send[peer].open();
    }
    if (sends) {
      if (!gate_open(round, peer)) ++round.gates_closed;
      queue_data(peer);
    }
    if (needs_gate) queue_report(peer);  // WIRE 3.3: announces that the operation is open here
  }
  queue_group();
  arm(round.plan.deadline);
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (round.plan.phases[k].active) arm(round.plan.phases[k].deadline);
  }
  for (Link& link : links_) arm(now + link.rtt.timeout());
  replay_early(now, round);
  refresh_settled_below();
  if (round.client != nullptr) advance(now, round);
}

void Endpoint::set_up_flows(Round& round, FlowKind kind) {
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self) {
      round.send(kind, peer) = SendFlow{};
      round.receive(kind, peer) = ReceiveFlow{};
      continue;
    }
    set_up_send(round, kind, peer);
    set_up_receive(round, kind, peer);
  }
  set_up_group(round, kind);
}

void Endpoint::set_up_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  Bitmap wanted = std::move(flow.wanted);  // its memory serves again
  flow = SendFlow{};
  flow.wanted = std::move(wanted);
  flow.grid = round.client->outgoing(kind, peer);
  flow.packets = flow.grid.packets();
  flow.weight = round.plan.weight_for(peer);
  if (flow.packets == 0) return;
  if (links_[peer].gone) {
    flow.settled = true;
    return;
  }
  ++round.phase(kind).sends_open;
  if (round.plan.phase(kind).repairable) flow.wanted.resize(flow.packets);
  flow.cursor = make_cursor(round, kind, peer, flow.grid);
}

schedule::PacketCursor Endpoint::make_cursor(const Round& round, FlowKind kind, Rank to,
                                             const schedule::PacketGrid& grid) const {
  const bool to_owner = kind == FlowKind::reduce;
  const std::uint32_t stream = static_cast<std::uint32_t>(kind);
  const schedule::PacketCursor::Keys keys{
      rotation_key(round.number, kind, to_owner ? to : config_.self),
      config_.permute
          ? keyed_hash(config_.seed, round.number, kInnerStream | stream, config_.self, to)
          : schedule::PacketCursor::kInOrder};
  return schedule::PacketCursor(grid, keys, round.plan.phase(kind).queue);
}

std::uint64_t Endpoint::rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const {
  if (!config_.permute) return schedule::PacketCursor::kInOrder;
  return keyed_hash(config_.seed, number, kRotationStream | static_cast<std::uint32_t>(kind), owner,
                    0);
}

void Endpoint::set_up_receive(Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  Bitmap arrived = std::move(flow.arrived);
  flow = ReceiveFlow{};
  flow.arrived = std::move(arrived);
  flow.packets = round.client->incoming(kind, peer).packets();
  flow.required = round.client->required(kind, peer);
  flow.last_arrival = round.opened_at;
  if (flow.packets == 0) return;
  flow.arrived.resize(flow.packets);
  flow.abandoned = links_[peer].gone;
  ++round.phase(kind).receives_open;
}

void Endpoint::replay_early(Instant now, Round& round) {
  const bool point = round.plan.point_to_point();
  if (point && round.plan.point_send) return;
  early_.take(early_key(point, round.plan.point_peer, round.number),
              [&](Rank from, ByteSpan datagram) {
                wire::DataHeader header;
                ByteSpan payload;
                if (round.client == nullptr ||
                    wire::decode_data(datagram, header, payload) != wire::Refusal::none)
                  return;
                accept_data(now, round, from, header, payload);
              });
}

Round* Endpoint::find_round(FlowKind kind, std::uint32_t number, Rank peer, bool as_sender) {
  const bool point = kind == FlowKind::point;
  for (int i = 0; i < open_count_; ++i) {
    Round& round = *open_[i];
    if (round.number != number || round.plan.point_to_point() != point) continue;
    if (point && (round.plan.point_peer != peer || round.plan.point_send != as_sender)) continue;
    if (!round.plan.phase(kind).active) continue;
    return &round;
  }
  return nullptr;
}

bool Endpoint::gate_open(const Round& round, Rank peer) const {
  const Link& link = links_[peer];
  const std::uint32_t opened =
      round.plan.point_to_point() ? link.peer_point_opened_below : link.peer_opened_below;
  return after(opened, round.number);
}

void Endpoint::release_chunks(Round& round, FlowKind kind) {
  for (int step = 1; step < config_.size; ++step) {
    const Rank peer = static_cast<Rank>((config_.self + step) % config_.size);
    if (round.send(kind, peer).open()) queue_data(peer);
  }
  queue_group();
}

void Endpoint::settle_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  // No more data, but an END, which is answered by a report (WIRE 4.3)
  if (round.awaits_word(kind, flow)) {
    flow.pass_over = flow.end_due = true;
    return queue_control(peer);
  }
  if (flow.grouped) leave_group(round, kind, peer);
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
    link.missed.note(round.number, opened_below_);
  ++link.unreported_settles;
  link.point_unreported |= kind == FlowKind::point;
  // An owner spreads only what it has settled: its complete shard confirms our part of it
  // (acknowledgement for free).
  if (kind == FlowKind::spread && flow.complete() && round.plan.phase(FlowKind::reduce).active) {
    settle_send(round, FlowKind::reduce, peer);
  }
  // A caller waits for this confirmation unless nothing can be asked for again, a copy was kept, or
  // our result will tell.
  const PhasePlan& plan = round.plan.phase(kind);
  const bool result_tells = kind == FlowKind::reduce && round.plan.phase(FlowKind::spread).active;
  const bool awaited = plan.repairable && !plan.payload_retained && !result_tells;
  if (awaited || link.unreported_settles >= 4) {
    queue_report(peer);
  } else {
    link.report_at = std::min(link.report_at, now + 2 * Duration(limits::kTickNs));
    arm(link.report_at);
  }
}

void Endpoint::settle_phase(Instant now, Round& round, FlowKind kind) {
  LEEWAY_ASSERT(!round.phase(kind).settled);
  round.phase(kind).settled = true;
  refresh_settled_below();
  round.client->on_settled(kind, now);
}

void Endpoint::advance(Instant now, Round& round) {
  // It fails at fail_at: what its flows say was meant for another operation
  if (!round.failure.ok()) return;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    PhaseState& phase = round.phases[k];
    if (!phase.settled && phase.receives_open == 0)
      settle_phase(now, round, static_cast<FlowKind>(k));
  }
  if (!round.done && round.caller_may_go()) {
    round.done = true;
    round.client->on_done(Status(), now);
  }
  if (round.done && round.all_confirmed()) close(round);
}

void Endpoint::finish(Instant now, Round& round, const Status& status) {
  if (!round.done) {
    round.done = true;
    round.client->on_done(status, now);
  }
  if (!status.ok()) ++counters_.rounds_failed;
  close(round);
}

void Endpoint::doom(Instant now, Round& round, const Status& status) {
  if (!round.failure.ok()) return;
  round.failure = status;
  round.fail_at = now + Duration(limits::kTickNs);
  arm(round.fail_at);
  if (!round.plan.point_to_point()) {
    disputed_[disputes_++ % disputed_.size()] = {.round = round.number,
                                                 .reduce_settled = true,
                                                 .spread_settled = true,
                                                 .tag = round.plan.tag};
  }
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && (!round.plan.point_to_point() || peer == round.plan.point_peer))
      queue_report(peer);
  }
}

void Endpoint::close(Round& round) {
  RoundClient* client = round.client;
  LEEWAY_ASSERT(client != nullptr);
  const auto end = open_.begin() + open_count_;
  std::copy(std::find(open_.begin(), end, &round) + 1, end, std::find(open_.begin(), end, &round));
  --open_count_;
  const bool gave_up = !round.plan.point_to_point() && !round.all_confirmed();
  if (gave_up && !after(gave_up_below_, round.number)) gave_up_below_ = round.number + 1;
  round.client = nullptr;
  refresh_settled_below();
  client->on_closed();
}

void Endpoint::refresh_settled_below() {
  std::uint32_t below = opened_below_;
  for (int i = 0; i < open_count_; ++i) {
    const Round& round = *open_[i];
    if (!round.plan.point_to_point() && !round.all_settled() && after(below, round.number))
      below = round.number;
  }
  settled_below_ = below;
}

void Endpoint::cancel_all(Instant now, const Status& status) {
  while (open_count_ > 0) finish(now, *open_[0], status);
}

void Endpoint::probe_all() {
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self) continue;
    links_[peer].probe_due = true;
    queue_control(peer);
  }
  group_probe_due_ = config_.multicast;
}

int Endpoint::peers_heard() const {
  return static_cast<int>(std::count(heard_.begin(), heard_.end(), true));
}

}  // namespace leeway::protocol
