#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <iterator>

#include "base/contracts.h"
#include "base/limits.h"
#include "scenario/rank_set.h"

namespace leeway::sim {
namespace {

// The library's default window, and the share of the receiver's buffer that bounds it
// (src/communicator/create.cc).
constexpr std::size_t kWindowBytesDefault = std::size_t{1} << 20;

// An injected "overtaken by n later datagrams" as time: the transport that ships holds at most a
// millisecond for 8.
constexpr Duration kOvertakenBy = std::chrono::microseconds(125);

// Round trips are measured from the first answer on; until then timers assume the empty network's,
// and this at least.
constexpr Duration kRttLeast = std::chrono::microseconds(100);

protocol::EndpointConfig config_of(const scenario::Scenario& scenario, std::uint64_t seed,
                                   const Topology& topology) {
  const auto& operation = scenario.operation();
  protocol::EndpointConfig config;
  config.size = static_cast<int>(topology.ranks());
  config.seed = seed;
  config.datagram_bytes = operation.datagram_bytes();
  config.permute = operation.permute();
  config.multicast = scenario.has_multicast();
  config.sum_payloads = scenario.contents();
  config.peer_timeout = Duration(static_cast<std::int64_t>(operation.peer_timeout_ms() * 1e6));
  const std::size_t share = kSocketBytes / std::max<std::size_t>(1, topology.ranks() - 1);
  const std::size_t wanted =
      operation.window_bytes() != 0 ? operation.window_bytes() : kWindowBytesDefault;
  config.window_bytes.assign(topology.ranks(), std::min(share, wanted));
  return config;
}

Duration initial_round_trip(const Topology& topology, std::uint32_t self) {
  std::int64_t longest = kRttLeast.count();
  for (std::uint32_t peer = 0; peer < topology.ranks(); ++peer) {
    if (peer != self) longest = std::max(longest, topology.round_trip_ns(self, peer));
  }
  return Duration(longest);
}

void flip_bit(std::vector<std::byte>& bytes, std::uint64_t bit) {
  const std::uint64_t at = bit % (bytes.size() * 8);
  bytes[at / 8] ^= static_cast<std::byte>(1u << at % 8);
}

Traffic traffic_of(ByteSpan datagram) {
  wire::Prefix prefix;
  LEEWAY_ASSERT(wire::peek_prefix(datagram, prefix) == wire::Refusal::none);  // the core made it
  return prefix.type == wire::PacketType::data ? Traffic::data : Traffic::control;
}

std::uint32_t length_of(const Packet& packet) {
  return packet.payload == kNoPayload ? 0 : packet.bytes - kHeaderBytes;  // a trimmed one has none
}

}  // namespace

Result<std::unique_ptr<CoreEndpoints>> CoreEndpoints::make(const scenario::Scenario& scenario,
                                                           std::uint64_t seed,
                                                           const Topology& topology,
                                                           EventQueue& queue, Network& network) {
  std::optional<FaultOptions> faults;
  if (scenario.operation().has_inject()) {
    auto parsed = parse_faults(scenario.operation().inject());
    if (!parsed.ok()) return parsed.status();
    faults = *parsed;
  }
  auto endpoints = std::unique_ptr<CoreEndpoints>(new CoreEndpoints(
      queue, network, scenario.contents(), scenario.operation().datagram_bytes()));
  endpoints->nodes_.resize(topology.ranks());
  protocol::EndpointConfig config = config_of(scenario, seed, topology);
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    Node& node = endpoints->nodes_[rank];
    config.self = static_cast<Rank>(rank);
    config.rtt_initial = initial_round_trip(topology, rank);
    node.engine = std::make_unique<collective::Engine>(config);
    node.uplink = Uplink(topology, rank);
    if (!faults) continue;
    auto plan = impairment::FaultPlan::create(*faults);
    if (!plan.ok()) return plan.status();
    node.faults = std::move(*plan);
  }
  if (Status status = endpoints->set_up_multicast(scenario); !status.ok()) return status;
  network.attach(Traffic::data, *endpoints);
  network.attach(Traffic::control, *endpoints);
  return endpoints;
}

// Ranks find out who hears them as those of a new Communicator do: by probes before the first call.
Status CoreEndpoints::set_up_multicast(const scenario::Scenario& scenario) {
  if (!scenario.has_multicast()) return {};
  const auto from = scenario::ranks_of(scenario, scenario.multicast().from());
  if (!from.ok()) return from.status();
  const auto to = scenario::ranks_of(scenario, scenario.multicast().to());
  if (!to.ok()) return to.status();
  for (const std::uint32_t rank : *from) {
    std::copy_if(to->begin(), to->end(), std::back_inserter(nodes_[rank].hearers),
                 [&](std::uint32_t hearer) { return hearer != rank; });
  }
  for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    nodes_[rank].engine->endpoint().probe_all();
    want_pump(Instant{0}, rank);
  }
  return {};
}

void CoreEndpoints::stop_multicast() {
  for (Node& node : nodes_) node.hearers.clear();
}

void CoreEndpoints::submit(Instant now, std::uint32_t rank, const Call& call, Client& client) {
  Node& node = nodes_[rank];
  LEEWAY_ASSERT(node.client == nullptr &&
                (call.spec != nullptr || call.kind == CallKind::messages));
  node.call = call;
  node.client = &client;
  if (call.spec != nullptr) {
    node.request = collective::Request();
    node.request.spec = *call.spec;
  }
  node.messages = std::vector<collective::Request>(call.messages.size());
  if (node.dead) return;
  if (observer_ != nullptr) observer_->on_submit(now, rank, node.call);
  if (call.spec != nullptr) node.engine->submit(now, node.request);
  for (std::size_t i = 0; i < call.messages.size(); ++i) {
    node.messages[i].spec = call.messages[i];
    node.engine->submit(now, node.messages[i]);
  }
  want_pump(now, rank);
}

void CoreEndpoints::leave(Instant now, std::uint32_t rank, bool at_once, Client& client) {
  Node& node = nodes_[rank];
  LEEWAY_ASSERT(node.client == nullptr);
  node.leaver = &client;
  protocol::Endpoint& endpoint = node.engine->endpoint();
  at_once ? endpoint.say_goodbye(now) : endpoint.leave(now);
  want_pump(now, rank);
}

// ---- what comes in ------------------------------------------------------------------------------

void CoreEndpoints::on_packet(Instant now, const Packet& packet, ByteSpan payload) {
  Node& node = nodes_[packet.to];
  if (node.dead) return;
  const Datagram datagram{packet.from, payload, length_of(packet),
                          packet.corrupt ? kNoPayload : packet.payload};
  if (node.faults) {
    pass_faults(now, packet.to, datagram);
  } else {
    hand_in(now, packet.to, datagram);
  }
}

// Only ever called in networks of hundreds of links.
void CoreEndpoints::expect(const Packet& packet) const {
  network_.payloads().prefetch(packet.payload);
  nodes_[packet.to].engine->endpoint().expect(static_cast<Rank>(packet.from));
}

void CoreEndpoints::pass_faults(Instant now, std::uint32_t rank, Datagram datagram) {
  impairment::PacketAddress address;
  if (!impairment::read_address(datagram.bytes, rank, address)) return hand_in(now, rank, datagram);
  const impairment::Fate fate = nodes_[rank].faults->fate(address);
  if (fate.lost) {
    ++injected_losses_;
    return;
  }
  if (fate.corrupt) {
    corrupted_.assign(datagram.bytes.begin(), datagram.bytes.end());
    flip_bit(corrupted_, fate.corrupt_bit);
    datagram.bytes = corrupted_;
    datagram.payload = kNoPayload;
  }
  const Instant due = now + fate.delay + fate.reorder * kOvertakenBy;
  if (fate.duplicate) hold_back(due, rank, datagram);
  if (due > now) return hold_back(due, rank, datagram);
  hand_in(now, rank, datagram);
}

void CoreEndpoints::hold_back(Instant until, std::uint32_t rank, const Datagram& datagram) {
  if (free_held_.empty()) {
    free_held_.push_back(static_cast<std::uint32_t>(held_.size()));
    held_.emplace_back();
  }
  const std::uint32_t index = free_held_.back();
  free_held_.pop_back();
  held_[index] = keep(datagram);
  queue_.push(until, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::arrive) | std::uint64_t{index} << 8);
}

CoreEndpoints::Kept CoreEndpoints::keep(const Datagram& datagram) {
  const auto length = static_cast<std::uint32_t>(datagram.length);
  if (datagram.payload == kNoPayload)
    return {datagram.from, network_.payloads().put(datagram.bytes), length};
  network_.payloads().hold(datagram.payload);
  return {datagram.from, datagram.payload, length};
}

void CoreEndpoints::hand_in_kept(Instant now, std::uint32_t rank, const Kept& kept) {
  if (!nodes_[rank].dead)
    hand_in(now, rank,
            {kept.from, network_.payloads().get(kept.payload), kept.length, kept.payload});
  network_.payloads().release(kept.payload);
}

void CoreEndpoints::hand_in(Instant now, std::uint32_t rank, const Datagram& datagram) {
  Node& node = nodes_[rank];
  if (node.paused) return keep_in_socket(node, datagram);
  const ByteSpan bytes = whole(datagram);
  if (observer_ != nullptr) observer_->on_datagram(now, rank, datagram.from, bytes);
  node.engine->on_datagram(now, static_cast<Rank>(datagram.from), bytes);
  want_pump(now, rank);
}

ByteSpan CoreEndpoints::whole(const Datagram& datagram) {
  if (datagram.bytes.size() == datagram.length) return datagram.bytes;
  std::copy(datagram.bytes.begin(), datagram.bytes.end(), arrived_.begin());
  return ByteSpan(arrived_).first(datagram.length);
}

void CoreEndpoints::keep_in_socket(Node& node, const Datagram& datagram) {
  if (node.socket_bytes + datagram.length > kSocketBytes) {
    ++socket_losses_;
    return;
  }
  node.socket_bytes += datagram.length;
  node.socket.push_back(keep(datagram));
}

// ---- what goes out ------------------------------------------------------------------------------

void CoreEndpoints::on_event(const Event& event) {
  const Instant now{event.time_ns};
  Node& node = nodes_[event.target];
  switch (static_cast<Step>(event.argument & 0xFF)) {
    case Step::pump:
      return pump(now, event.target);
    case Step::arrive: {
      const auto index = static_cast<std::uint32_t>(event.argument >> 8);
      free_held_.push_back(index);
      return hand_in_kept(now, event.target, held_[index]);
    }
    case Step::wake:
      if (node.wake_at != now) return;  // re-armed since
      node.wake_at = Instant::infinite_future();
      return pump(now, event.target);
  }
}

// After everything else of this instant: datagrams that arrive together are answered together, as
// by a receiver that empties its socket first.
void CoreEndpoints::want_pump(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  if (node.pump_due || node.paused || node.dead) return;
  node.pump_due = true;
  queue_.push(now, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::pump));
}

void CoreEndpoints::pump(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  node.pump_due = false;
  if (node.paused || node.dead) return;
  node.engine->on_wake(now);
  while (node.uplink.has_room(now, network_) && node.engine->poll_train(now, buffer_))
    launch(now, rank, buffer_.train());
  if (observer_ != nullptr) observer_->on_pumped(now, rank, *node.engine);
  if (node.client != nullptr && is_done(node)) finish_call(now, rank);
  if (node.leaver != nullptr && node.engine->endpoint().left()) {
    kill(now, rank);
    return node.leaver->on_left(now, rank);
  }
  arm(now, rank);
}

bool CoreEndpoints::is_done(const Node& node) {
  if (node.call.spec != nullptr) return node.request.done;
  return std::all_of(node.messages.begin(), node.messages.end(),
                     [](const collective::Request& message) { return message.done; });
}

void CoreEndpoints::launch(Instant now, std::uint32_t rank, const Train& train) {
  const ByteSpan bytes = in_a_row(train);
  for (std::size_t at = 0; at < bytes.size(); at += train.segment_bytes) {
    const ByteSpan datagram = bytes.subspan(at, std::min(train.segment_bytes, bytes.size() - at));
    const bool shared = train.to == kEveryRank;
    const auto& hearers = nodes_[rank].hearers;
    if (shared && hearers.empty()) continue;  // the first switch drops it
    const Traffic traffic = traffic_of(datagram);
    const bool header_alone = !contents_ && traffic == Traffic::data;
    const Packet packet{.from = rank,
                        .to = train.to,
                        .bytes = static_cast<std::uint32_t>(datagram.size()) + kHeaderBytes,
                        .payload = network_.payloads().put(
                            header_alone ? datagram.first(wire::kDataHeaderBytes) : datagram),
                        .traffic = traffic};
    shared ? network_.send_shared(now, packet, hearers) : network_.send(now, packet);
  }
}

ByteSpan CoreEndpoints::in_a_row(const Train& train) {
  if (train.slices.size() == 1) return {train.slices[0].data, train.slices[0].bytes};
  train_bytes_.clear();
  for (const Slice& slice : train.slices)
    train_bytes_.insert(train_bytes_.end(), slice.data, slice.data + slice.bytes);
  return train_bytes_;
}

// The engine's own timer, or the time at which the uplink takes more and the engine is asked again.
void CoreEndpoints::arm(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  std::optional<Instant> wake = node.engine->next_wake();
  const Instant writable = node.uplink.writable_at();
  if (writable > now && (!wake || writable < *wake)) wake = writable;
  if (!wake) return;
  const Instant at = std::max(*wake, now + Duration(1));
  if (at >= node.wake_at) return;  // an earlier one is armed already and will look again
  node.wake_at = at;
  queue_.push(at, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::wake));
}

void CoreEndpoints::finish_call(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  const CallResult result = result_of(now, node);
  if (observer_ != nullptr) observer_->on_done(now, rank, node.call, result);
  Client* const client = node.client;
  node.client = nullptr;
  client->on_done(now, rank, result);
}

CallResult CoreEndpoints::result_of(Instant now, const Node& node) {
  const bool messages = node.call.spec == nullptr;
  const std::span<const collective::Request> requests =
      messages ? std::span<const collective::Request>(node.messages)
               : std::span<const collective::Request>(&node.request, 1);
  CallResult result;
  result.submitted_ns = messages && requests.empty() ? now.ns : requests[0].submitted.ns;
  result.done_ns = now.ns;
  for (const collective::Request& request : requests) {
    if (result.status.ok()) result.status = request.status;
    for (const PeerReport& peer : request.report.peers) {
      result.expected += peer.expected;
      result.arrived += peer.arrived;
      result.arrived_first += peer.arrived - peer.repaired;
    }
    result.bytes_sent += request.report.bytes_sent;
    result.deadline_cut |= request.report.deadline_cut;
  }
  if (messages) {
    result.messages = requests;
    return result;
  }
  result.contributors_mean = node.request.report.contributors.mean;
  result.contributors_min = node.request.report.contributors.min;
  result.report = &node.request.report;
  return result;
}

void CoreEndpoints::set_calm() {
  for (Node& node : nodes_) node.faults.reset();
}

// ---- faults of a process ------------------------------------------------------------------------

void CoreEndpoints::pause(Instant, std::uint32_t rank) {
  nodes_[rank].paused = true;
}

void CoreEndpoints::resume(Instant now, std::uint32_t rank) {
  Node& node = nodes_[rank];
  if (!node.paused) return;
  node.paused = false;
  for (const Kept& kept : node.socket) hand_in_kept(now, rank, kept);
  node.socket.clear();
  node.socket_bytes = 0;
  want_pump(now, rank);
}

void CoreEndpoints::kill(Instant, std::uint32_t rank) {
  Node& node = nodes_[rank];
  node.dead = true;
  for (const Kept& kept : node.socket) network_.payloads().release(kept.payload);
  node.socket.clear();
}

bool CoreEndpoints::idle() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return node.dead || node.engine->idle(); });
}

}  // namespace leeway::sim
