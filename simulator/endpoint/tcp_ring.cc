#include "endpoint/tcp_ring.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::sim {

namespace {

// A rank posts receives for this many slices beyond those that it has received (Gloo's double
// buffering).
constexpr std::uint64_t kPostedAhead = 2;
// A notice of a posted receive is as long as Gloo's message header.
constexpr std::uint64_t kNoticeBytes = 32;

constexpr std::uint32_t kIpHeaderBytes = 20;

// The lowest bits of an event's argument hold its step. In a deadline event the other bits hold the
// number of the call.
constexpr int kStepBits = 2;
constexpr std::uint64_t kStepMask = (1u << kStepBits) - 1;

// A flow's number consists of its generation, its line (number of the rank that sends data on it),
// and a bit that is set for notices.
constexpr int kLineShift = 1;
constexpr int kGenerationShift = 15;
constexpr std::uint32_t kLineMask = (1u << (kGenerationShift - kLineShift)) - 1;
constexpr std::uint32_t kGenerations = 1u << 9;

constexpr std::uint32_t flow_number(std::uint32_t line, std::uint32_t generation, bool notices) {
  return generation % kGenerations << kGenerationShift | line << kLineShift | (notices ? 1 : 0);
}
constexpr std::uint32_t line_of(std::uint32_t flow) {
  return flow >> kLineShift & kLineMask;
}
constexpr bool is_notices(std::uint32_t flow) {
  return (flow & 1) != 0;
}

TcpOptions tcp_options(const scenario::Scenario& scenario, std::int64_t round_trip_ns) {
  TcpOptions options;
  options.segment_bytes =
      scenario.operation().datagram_bytes() + kHeaderBytes - options.header_bytes;
  options.handshake_rtt_ns = std::max<std::int64_t>(round_trip_ns, 1);
  return options;
}

}  // namespace

Result<std::unique_ptr<TcpRing>> TcpRing::make(const scenario::Scenario& scenario,
                                               const Topology& topology, EventQueue& queue,
                                               Network& network) {
  auto ring = std::unique_ptr<TcpRing>(new TcpRing(queue, network));
  const double deadline_ms = scenario.operation().delivery().deadline_ms();
  ring->deadline_ = Duration(static_cast<std::int64_t>(deadline_ms * 1e6));
  ring->nodes_.resize(topology.ranks());
  ring->lines_.resize(topology.ranks());
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    const std::int64_t round_trip_ns = topology.round_trip_ns(rank, ring->successor(rank));
    ring->options_.push_back(tcp_options(scenario, round_trip_ns));
    ring->lines_[rank].broken = topology.ranks() > 1;
    ring->nodes_[rank].uplink = Uplink(topology, rank);
  }
  network.attach(Traffic::data, *ring);
  network.attach(Traffic::control, *ring);
  return ring;
}

TcpFlow* TcpRing::find_flow(std::uint32_t number) {
  Line& line = lines_[line_of(number)];
  TcpFlow* flow = (is_notices(number) ? line.notices : line.data).get();
  return line.broken || flow->place().flow != number ? nullptr : flow;
}

// -------------------------------------------------------------------------------------------------
// Calls

void TcpRing::submit(Instant now, std::uint32_t rank, const Call& call, Client& client) {
  Node& node = nodes_[rank];
  LEEWAY_ASSERT(node.client == nullptr && !node.dead);
  node.call = call;
  node.client = &client;
  node.submitted = now;
  node.deadline = now + deadline_;
  node.begun = false;
  node.sent = node.received = node.posted = 0;
  node.bytes_sent_before = node.bytes_sent;
  ++node.calls;
  queue_.push(now, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::begin));
}

void TcpRing::begin(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  const auto plan = RingPlan::make(node.call.kind, node.call.bytes, rank, ranks());
  if (!plan) {
    node.plan = RingPlan();
    return finish(now, rank,
                  Status::error(StatusCode::kUnsupported, "a ring over TCP does no %s",
                                to_string(node.call.kind)));
  }
  node.plan = *plan;
  node.begun = true;
  queue_.push(std::max(node.deadline, now), rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::deadline) | node.calls << kStepBits);
  const std::uint32_t before = predecessor(rank);
  if (given_up(rank)) return;
  if (lines_[before].broken) establish(now, before);
  if (lines_[rank].broken) establish(now, rank);
  if (ranks() > 1) node.repaired_before = lines_[before].data->counters().repaired;
  pump(now, rank);
}

void TcpRing::establish(Instant now, std::uint32_t number) {
  Line& line = lines_[number];
  line.broken = false;
  line.bytes = line.notice_bytes = line.posted = 0;
  ++line.generation;
  const std::uint32_t to = successor(number);
  TcpHost& host = *this;
  line.data =
      std::make_unique<TcpFlow>(TcpFlow::Place{.flow = flow_number(number, line.generation, false),
                                               .from = number,
                                               .to = to,
                                               .data = Traffic::data,
                                               .acks = Traffic::control},
                                options_[number], host);
  line.notices =
      std::make_unique<TcpFlow>(TcpFlow::Place{.flow = flow_number(number, line.generation, true),
                                               .from = to,
                                               .to = number,
                                               .data = Traffic::control,
                                               .acks = Traffic::control},
                                options_[number], host);
  Node& receiver = nodes_[to];
  receiver.repaired_before = 0;
  // The receiver opened this call before the sender did. It posted receives on the old connection,
  // which is gone. So it posts these receives again.
  if (receiver.begun && receiver.calls == nodes_[number].calls) post(now, to, receiver.posted);
}

void TcpRing::post(Instant now, std::uint32_t rank, std::uint64_t receives) {
  if (receives > 0) lines_[predecessor(rank)].notices->send(now, receives * kNoticeBytes);
}

// Posts receives and passes on slices, as far as the rank can now.
void TcpRing::pump(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  if (!node.begun || given_up(rank)) return;
  take_slices(rank);
  const std::uint64_t wanted = std::min(node.received + kPostedAhead, node.plan.slices_in());
  const std::uint64_t more = wanted - node.posted;
  node.posted = wanted;
  post(now, rank, more);
  Line& line = lines_[rank];
  while (line.posted > 0 && node.sent < node.plan.ready(node.received)) {
    --line.posted;
    line.data->send(now, node.plan.bytes_out(node.sent++));
  }
  const RingPlan& plan = node.plan;
  if (node.received == plan.slices_in() && node.sent == plan.slices_out()) finish(now, rank, {});
}

void TcpRing::take_slices(std::uint32_t rank) {
  Node& node = nodes_[rank];
  Line& line = lines_[predecessor(rank)];
  while (node.received < node.plan.slices_in() && line.bytes >= node.plan.bytes_in(node.received)) {
    line.bytes -= node.plan.bytes_in(node.received++);
  }
}

void TcpRing::finish(Instant now, std::uint32_t rank, const Status& status) {
  Node& node = nodes_[rank];
  CallResult result;
  result.status = status;
  result.submitted_ns = node.submitted.ns;
  result.done_ns = now.ns;
  result.bytes_sent = node.bytes_sent - node.bytes_sent_before;
  result.deadline_cut = status.code() == StatusCode::kDeadlineExceeded;
  if (ranks() > 1 && node.begun) {
    const Line& line = lines_[predecessor(rank)];
    const std::uint64_t segment_bytes = options_[rank].segment_bytes;
    std::uint64_t bytes = line.bytes;
    for (std::uint64_t i = 0; i < node.received; ++i) bytes += node.plan.bytes_in(i);
    result.expected = (node.plan.total_bytes_in() + segment_bytes - 1) / segment_bytes;
    result.arrived = status.ok() ? result.expected : bytes / segment_bytes;
    const std::uint64_t repaired = line.data->counters().repaired - node.repaired_before;
    result.arrived_first = result.arrived - std::min(repaired, result.arrived);
  }
  if (status.ok() && node.plan.reduces()) {
    result.contributors_min = ranks();
    result.contributors_mean = ranks();
  }
  node.begun = false;
  std::exchange(node.client, nullptr)->on_done(now, rank, result);
}

void TcpRing::expire(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  const bool receiving = node.received < node.plan.slices_in();
  const std::uint32_t awaited = receiving ? predecessor(rank) : successor(rank);
  const std::uint64_t done = receiving ? node.received : node.sent;
  const std::uint64_t all = receiving ? node.plan.slices_in() : node.plan.slices_out();
  const Status status = Status::error(
      StatusCode::kDeadlineExceeded,
      "rank %u waits for rank %u in %s of round %u: %llu of %llu slices %s within %lld ms", rank,
      awaited, to_string(node.call.kind), node.call.round, static_cast<unsigned long long>(done),
      static_cast<unsigned long long>(all), receiving ? "arrived" : "were sent",
      static_cast<long long>(deadline_.count() / 1'000'000));
  const std::uint64_t call = node.calls;  // the client may submit the next one
  finish(now, rank, status);
  tear_down(predecessor(rank), call);
  tear_down(rank, call);
}

void TcpRing::tear_down(std::uint32_t number, std::uint64_t call) {
  Line& line = lines_[number];
  line.broken = true;
  line.given_up = std::max(line.given_up, call);
}

bool TcpRing::given_up(std::uint32_t rank) const {
  const std::uint64_t call = nodes_[rank].calls;
  return call <= lines_[rank].given_up || call <= lines_[predecessor(rank)].given_up;
}

// -------------------------------------------------------------------------------------------------
// Packets and timers

void TcpRing::on_packet(Instant now, const Packet& packet, ByteSpan) {
  Node& node = nodes_[packet.to];
  if (node.dead) return;
  if (node.paused) {
    node.socket.push_back(packet);
  } else {
    hand_in(now, packet);
  }
}

void TcpRing::hand_in(Instant now, const Packet& packet) {
  if (TcpFlow* flow = find_flow(TcpFlow::flow_of(packet))) flow->on_packet(now, packet);
}

void TcpRing::send_packet(Instant now, const Packet& packet) {
  nodes_[packet.from].bytes_sent += packet.bytes - kIpHeaderBytes;
  network_.send(now, packet);
}

Instant TcpRing::line_free_at(Instant now, std::uint32_t rank) {
  return nodes_[rank].uplink.free_at(now, network_);
}

void TcpRing::on_delivered(Instant now, std::uint32_t flow, std::uint64_t bytes) {
  const std::uint32_t number = line_of(flow);
  Line& line = lines_[number];
  if (is_notices(flow)) {
    line.notice_bytes += bytes;
    line.posted += line.notice_bytes / kNoticeBytes;
    line.notice_bytes %= kNoticeBytes;
    pump(now, number);
  } else {
    line.bytes += bytes;
    pump(now, successor(number));
  }
}

void TcpRing::wake_at(Instant at, std::uint32_t flow, TcpEnd end) {
  const Step step = end == TcpEnd::sender ? Step::wake_sender : Step::wake_receiver;
  queue_.push(at, flow, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(step));
}

void TcpRing::on_event(const Event& event) {
  const Instant now{event.time_ns};
  const auto step = static_cast<Step>(event.argument & kStepMask);
  if (step == Step::wake_sender) return on_wake(now, event.target, TcpEnd::sender);
  if (step == Step::wake_receiver) return on_wake(now, event.target, TcpEnd::receiver);
  const Node& node = nodes_[event.target];
  if (node.paused || node.dead || node.client == nullptr) return;
  if (step == Step::begin && !node.begun) begin(now, event.target);
  if (step == Step::deadline && node.calls == event.argument >> kStepBits) {
    expire(now, event.target);
  }
}

void TcpRing::on_wake(Instant now, std::uint32_t number, TcpEnd end) {
  TcpFlow* flow = find_flow(number);
  if (flow == nullptr) return;
  const Node& node = nodes_[end == TcpEnd::sender ? flow->place().from : flow->place().to];
  if (!node.paused && !node.dead) flow->on_wake(now, end);
}

// -------------------------------------------------------------------------------------------------
// Faults

void TcpRing::pause(Instant, std::uint32_t rank) {
  nodes_[rank].paused = true;
}

void TcpRing::resume(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  if (!node.paused || node.dead) return;
  node.paused = false;
  for (const Packet& packet : std::exchange(node.socket, {})) hand_in(now, packet);
  wake_all(now, rank);
  if (node.client == nullptr) return;
  if (!node.begun) begin(now, rank);
  if (node.client != nullptr && now >= node.deadline) expire(now, rank);
}

// Handles timers that went off while the rank was paused.
void TcpRing::wake_all(Instant now, std::uint32_t rank) {
  Line& out = lines_[rank];
  Line& in = lines_[predecessor(rank)];
  if (out.data && !out.broken) {
    out.data->on_wake(now, TcpEnd::sender);
    out.notices->on_wake(now, TcpEnd::receiver);
  }
  if (in.data && !in.broken) {
    in.data->on_wake(now, TcpEnd::receiver);
    in.notices->on_wake(now, TcpEnd::sender);
  }
}

void TcpRing::kill(Instant, std::uint32_t rank) {
  Node& node = nodes_[rank];
  node.dead = true;
  node.begun = false;
  node.client = nullptr;
  node.socket.clear();
}

}  // namespace leeway::sim
