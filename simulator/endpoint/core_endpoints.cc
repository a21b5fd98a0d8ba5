#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/contracts.h"
#include "base/limits.h"
#include "collective/message_group.h"
#include "scenario/rank_set.h"
#include "sealing/null_cipher.h"

namespace leeway::sim {
namespace {

// The library's default window, and the share of the receiver's buffer that bounds it
// (src/communicator/create.cc).
constexpr std::size_t kWindowBytesDefault = std::size_t{1} << 20;
constexpr std::size_t kPacedWindowsBytes = std::size_t{16} << 20;

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
  config.sum_payloads = scenario.contents() && !scenario.has_sealing();
  config.peer_timeout = Duration(static_cast<std::int64_t>(operation.peer_timeout_ms() * 1e6));
  const std::size_t peers = std::max<std::size_t>(1, topology.ranks() - 1);
  std::size_t share = kSocketBytes / peers;
  if (scenario.congestion().control() != scenario::Congestion::none) {
    config.peers_window_bytes = std::min(share, kWindowBytesDefault);
    share = std::max(share, std::min(kWindowBytesDefault, kPacedWindowsBytes / peers));
  }
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

void flip_bit(MutableByteSpan bytes, std::uint64_t bit) {
  const std::uint64_t at = bit % (bytes.size() * 8);
  bytes[at / 8] ^= static_cast<std::byte>(1u << at % 8);
}

congestion::Settings congestion_of(const scenario::Scenario& scenario) {
  static_assert(static_cast<int>(CongestionControl::wan) == scenario::Congestion::wan);
  const scenario::Congestion& given = scenario.congestion();
  return {.control = static_cast<CongestionControl>(given.control()),
          .rate_bits_per_second = static_cast<std::uint64_t>(given.rate_mbps() * 1e6)};
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
  endpoints->processes_.resize(topology.ranks());
  protocol::EndpointConfig config = config_of(scenario, seed, topology);
  std::vector<Rank> all(topology.ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    Process& process = endpoints->processes_[rank];
    config.self = static_cast<Rank>(rank);
    config.rtt_initial = initial_round_trip(topology, rank);
    endpoints->configs_.push_back(config);
    process.node = std::make_unique<collective::Node>(congestion_of(scenario));
    process.uplink = Uplink(topology, rank);
    if (!faults) continue;
    auto plan = impairment::FaultPlan::create(*faults);
    if (!plan.ok()) return plan.status();
    process.faults = std::move(*plan);
  }
  endpoints->add(config.epoch, std::move(all), nullptr);
  for (Seat& seat : endpoints->communicators_[0].seats) endpoints->join(Instant{0}, seat);
  endpoints->set_up_sealing(scenario);
  if (Status status = endpoints->set_up_multicast(scenario); !status.ok()) return status;
  network.attach(Traffic::data, *endpoints);
  network.attach(Traffic::control, *endpoints);
  return endpoints;
}

// As all processes have met at a rendezvous.
void CoreEndpoints::set_up_sealing(const scenario::Scenario& scenario) {
  if (!scenario.has_sealing()) return;
  const seal::Rotation rotation{
      .datagrams = scenario.sealing().phase_datagrams(),
      .time = Duration(static_cast<std::int64_t>(scenario.sealing().phase_ms() * 1e6))};
  for (Rank self = 0; self < processes_.size(); ++self) {
    processes_[self].seals = std::make_unique<seal::Associations>(std::uint8_t{0}, rotation);
    for (Rank peer = 0; peer < processes_.size(); ++peer) {
      if (peer == self) continue;
      processes_[self].seals->meet(Instant{0}, peer, null_keys(self, peer), null_cipher());
    }
  }
}

// Ranks find out who hears them as those of a new Communicator do: by probes before the first call.
Status CoreEndpoints::set_up_multicast(const scenario::Scenario& scenario) {
  if (!scenario.has_multicast()) return {};
  const auto from = scenario::ranks_of(scenario, scenario.multicast().from());
  if (!from.ok()) return from.status();
  const auto to = scenario::ranks_of(scenario, scenario.multicast().to());
  if (!to.ok()) return to.status();
  for (const std::uint32_t rank : *from) {
    std::copy_if(to->begin(), to->end(), std::back_inserter(processes_[rank].hearers),
                 [&](std::uint32_t hearer) { return hearer != rank; });
  }
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    Seat& seat = communicators_[0].seats[rank];
    seat.member->engine().endpoint().probe_all();
    processes_[rank].node->touch(*seat.member);
    want_pump(Instant{0}, rank);
  }
  return {};
}

void CoreEndpoints::stop_multicast() {
  for (Process& process : processes_) process.hearers.clear();
}

// ---- communicators ------------------------------------------------------------------------------

std::uint32_t CoreEndpoints::add(std::uint32_t epoch, std::vector<Rank> processes,
                                 CoreObserver* observer) {
  const auto number = static_cast<std::uint32_t>(communicators_.size());
  Communicator& made = communicators_.emplace_back();
  made.epoch = epoch;
  made.observer = observer;
  made.seats.resize(processes.size());
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    Seat& seat = made.seats[rank];
    seat.process = processes[rank];
    seat.communicator = number;
    seat.rank = rank;
  }
  made.processes = std::move(processes);
  return number;
}

void CoreEndpoints::join(Instant now, Seat& seat) {
  const Communicator& communicator = communicators_[seat.communicator];
  Process& process = processes_[seat.process];
  protocol::EndpointConfig config = configs_[seat.process];
  config.self = static_cast<Rank>(seat.rank);
  config.size = static_cast<int>(communicator.processes.size());
  config.epoch = communicator.epoch;
  config.multicast = config.multicast && seat.communicator == 0;
  config.window_bytes.resize(communicator.processes.size());
  seat.member = &process.node->join(now, config, communicator.processes);
  process.seats.push_back(&seat);
}

const collective::Engine& CoreEndpoints::open(Instant now, std::uint32_t communicator,
                                              std::uint32_t rank) {
  const Communicator& opened = communicators_[communicator];
  Seat& seat = communicators_[communicator].seats[rank];
  LEEWAY_ASSERT(seat.member == nullptr);
  Process& process = processes_[seat.process];
  join(now, seat);
  opened.observer->on_open(rank, seat.member->engine());
  for (std::size_t i = 0; i < process.waiting.size(); ++i) {
    Waiting& waiting = process.waiting[(process.next_waiting + i) % process.waiting.size()];
    if (waiting.bytes.empty() || waiting.epoch != opened.epoch) continue;
    const Rank from = seat.member->rank_in(static_cast<Rank>(waiting.from));
    if (from != kNoRank) opened.observer->on_datagram(now, rank, from, waiting.bytes);
    waiting.bytes.clear();
  }
  want_pump(now, seat.process);
  return seat.member->engine();
}

void CoreEndpoints::submit(Instant now, std::uint32_t communicator, std::uint32_t rank,
                           const Call& call, Client& client) {
  Seat& seat = communicators_[communicator].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr && seat.member != nullptr &&
                (call.spec != nullptr || call.kind == CallKind::messages));
  seat.call = call;
  seat.client = &client;
  if (call.spec != nullptr) {
    seat.request = collective::Request();
    seat.request.spec = *call.spec;
  }
  seat.messages = std::vector<collective::Request>(call.spec == nullptr ? call.messages.size() : 0);
  Process& process = processes_[seat.process];
  if (process.dead) return;
  CoreObserver* const observer = communicators_[communicator].observer;
  if (observer != nullptr) observer->on_submit(now, rank, seat.call);
  collective::Engine& engine = seat.member->engine();
  if (call.spec != nullptr) engine.submit(now, seat.request);
  for (std::size_t i = 0; i < seat.messages.size(); ++i) {
    seat.messages[i].spec = call.messages[i];
    engine.submit(now, seat.messages[i]);
  }
  process.node->touch(*seat.member);
  want_pump(now, seat.process);
}

void CoreEndpoints::leave(Instant now, std::uint32_t rank, bool at_once, Client& client) {
  Seat& seat = communicators_[0].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr);
  seat.leaver = &client;
  protocol::Endpoint& endpoint = seat.member->engine().endpoint();
  at_once ? endpoint.say_goodbye(now) : endpoint.leave(now);
  processes_[rank].node->touch(*seat.member);
  want_pump(now, rank);
}

void CoreEndpoints::close(Instant now, std::uint32_t communicator, std::uint32_t rank,
                          Client& client) {
  Seat& seat = communicators_[communicator].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr && seat.former == nullptr);
  seat.leaver = &client;
  seat.member->engine().endpoint().leave(now);
  processes_[seat.process].node->touch(*seat.member);
  want_pump(now, seat.process);
}

// What the library does (src/driving/channel.cc), but for the wait until nobody reads the call's
// buffers: datagrams are copied when they leave.
bool CoreEndpoints::abort(Instant now, std::uint32_t communicator, std::uint32_t rank) {
  Seat& seat = communicators_[communicator].seats[rank];
  Process& process = processes_[seat.process];
  LEEWAY_ASSERT(seat.former == nullptr && !process.dead && !process.paused);
  std::vector<const collective::Request*> open;
  for (const collective::Request& request : parts_of(seat)) {
    if (seat.client != nullptr && !request.done) open.push_back(&request);
  }
  seat.aborted = true;
  seat.member->engine().cancel_all(
      now, Status::error(StatusCode::kCancelled, "rank %u: communicator was aborted", rank));
  const bool cancelled = std::all_of(open.begin(), open.end(), [](const auto* request) {
    return request->done && request->status.code() == StatusCode::kCancelled;
  });
  seat.member->engine().endpoint().say_goodbye(now);
  process.node->touch(*seat.member);
  process.node->on_wake(now);
  if (seat.client != nullptr && is_done(seat)) finish_call(now, seat);
  want_pump(now, seat.process);
  return cancelled && seat.client == nullptr;
}

// The node answers from now on for the member, which stays for those who still look at it.
void CoreEndpoints::part(Seat& seat) {
  Process& process = processes_[seat.process];
  seat.former = process.node->part(*seat.member);
  std::erase(process.seats, &seat);
}

// ---- what comes in ------------------------------------------------------------------------------

void CoreEndpoints::on_packet(Instant now, const Packet& packet, ByteSpan payload) {
  const Process& process = processes_[packet.to];
  if (process.dead) return;
  Datagram datagram{packet.from, payload, length_of(packet),
                    packet.corrupt ? kNoPayload : packet.payload};
  if (process.seals != nullptr && !unseal(now, packet.to, datagram)) return;
  if (process.faults) {
    pass_faults(now, packet.to, datagram);
  } else {
    hand_in(now, packet.to, datagram);
  }
}

// Before injected faults, as in the library.
bool CoreEndpoints::unseal(Instant now, std::uint32_t process, Datagram& datagram) {
  unsealed_.assign(datagram.bytes.begin(), datagram.bytes.end());
  const ByteSpan plain =
      processes_[process].seals->open(now, static_cast<Rank>(datagram.from), unsealed_);
  datagram = {datagram.from, plain, plain.size(), kNoPayload};
  return !plain.empty();
}

// Only ever called in networks of hundreds of links.
void CoreEndpoints::expect(const Packet& packet) const {
  network_.payloads().prefetch(packet.payload);
  engine(packet.to).endpoint().expect(static_cast<Rank>(packet.from));
}

void CoreEndpoints::pass_faults(Instant now, std::uint32_t rank, Datagram datagram) {
  impairment::PacketAddress address;
  if (!impairment::read_address(datagram.bytes, rank, address)) return hand_in(now, rank, datagram);
  const impairment::Fate fate = processes_[rank].faults->fate(address);
  if (fate.lost) {
    ++injected_losses_;
    return;
  }
  if (fate.corrupt) {
    corrupted_.assign(datagram.bytes.begin(), datagram.bytes.end());
    // Nothing proves the payload of what was opened: the library's own damage spares it, too
    const MutableByteSpan all = corrupted_;
    flip_bit(address.payload_summed ? all : all.first(wire::kDataHeaderBytes), fate.corrupt_bit);
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
  if (!processes_[rank].dead)
    hand_in(now, rank,
            {kept.from, network_.payloads().get(kept.payload), kept.length, kept.payload});
  network_.payloads().release(kept.payload);
}

void CoreEndpoints::hand_in(Instant now, std::uint32_t rank, const Datagram& datagram) {
  Process& process = processes_[rank];
  if (process.paused) return keep_in_socket(process, datagram);
  const ByteSpan bytes = whole(datagram);
  if (communicators_[0].observer != nullptr) tell_datagram(now, rank, datagram, bytes);
  process.node->on_datagram(now, static_cast<Rank>(datagram.from), bytes);
  want_pump(now, rank);
}

// By the epoch that it names, as the node finds its member.
void CoreEndpoints::tell_datagram(Instant now, std::uint32_t process, const Datagram& datagram,
                                  ByteSpan bytes) {
  const std::uint32_t epoch = wire::epoch_of(bytes).value_or(0);
  for (const Seat* seat : processes_[process].seats) {
    if (communicators_[seat->communicator].epoch != epoch) continue;
    const Rank from = seat->member->rank_in(static_cast<Rank>(datagram.from));
    if (from == kNoRank) break;
    return communicators_[seat->communicator].observer->on_datagram(now, seat->rank, from, bytes);
  }
  tell_stray(now, process, datagram.from, epoch, bytes);
}

// One that reaches no member. Nothing but a member that joins later may ever see it, and of those
// that wait the node keeps the latest.
void CoreEndpoints::tell_stray(Instant now, std::uint32_t process, std::uint32_t from,
                               std::uint32_t epoch, ByteSpan bytes) {
  communicators_[0].observer->on_stray(now, process);
  wire::Prefix prefix;
  if (wire::decode_prefix(bytes, nullptr, prefix) != wire::Refusal::none) {
    for (const Communicator& any : communicators_) tell_loss(process, from, any.epoch);
    return;
  }
  if (prefix.type == wire::PacketType::alive) return;  // the node keeps none
  for (const Communicator& any : communicators_) {
    const auto seat = std::find_if(any.seats.begin(), any.seats.end(),
                                   [&](const Seat& one) { return one.process == process; });
    if (any.epoch == epoch && seat != any.seats.end() && seat->member != nullptr) return;  // closed
  }
  Process& here = processes_[process];
  here.waiting.resize(collective::Lobby::kPlaces);
  Waiting& place = here.waiting[here.next_waiting];
  here.next_waiting = (here.next_waiting + 1) % here.waiting.size();
  if (!place.bytes.empty()) tell_loss(process, place.from, place.epoch);
  place = {epoch, from, {bytes.begin(), bytes.end()}};
}

void CoreEndpoints::tell_loss(std::uint32_t process, std::uint32_t from, std::uint32_t epoch) {
  for (const Communicator& any : communicators_) {
    if (any.epoch != epoch) continue;
    const auto rank_of = [&](std::uint32_t of) {
      return static_cast<Rank>(std::find(any.processes.begin(), any.processes.end(), of) -
                               any.processes.begin());
    };
    const Rank to = rank_of(process);
    const Rank sender = rank_of(from);
    if (to < any.seats.size() && sender < any.seats.size()) any.observer->on_lost(to, sender);
  }
}

ByteSpan CoreEndpoints::whole(const Datagram& datagram) {
  if (datagram.bytes.size() == datagram.length) return datagram.bytes;
  std::copy(datagram.bytes.begin(), datagram.bytes.end(), arrived_.begin());
  return ByteSpan(arrived_).first(datagram.length);
}

void CoreEndpoints::keep_in_socket(Process& process, const Datagram& datagram) {
  if (process.socket_bytes + datagram.length > kSocketBytes) {
    ++socket_losses_;
    return;
  }
  process.socket_bytes += datagram.length;
  process.socket.push_back(keep(datagram));
}

// ---- what goes out ------------------------------------------------------------------------------

void CoreEndpoints::on_event(const Event& event) {
  const Instant now{event.time_ns};
  Process& process = processes_[event.target];
  switch (static_cast<Step>(event.argument & 0xFF)) {
    case Step::pump:
      return pump(now, event.target);
    case Step::arrive: {
      const auto index = static_cast<std::uint32_t>(event.argument >> 8);
      free_held_.push_back(index);
      return hand_in_kept(now, event.target, held_[index]);
    }
    case Step::wake:
      if (process.wake_at != now) return;  // re-armed since
      process.wake_at = Instant::infinite_future();
      return pump(now, event.target);
  }
}

// After everything else of this instant: datagrams that arrive together are answered together, as
// by a receiver that empties its socket first.
void CoreEndpoints::want_pump(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  if (process.pump_due || process.paused || process.dead) return;
  process.pump_due = true;
  queue_.push(now, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::pump));
}

void CoreEndpoints::pump(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  process.pump_due = false;
  if (process.paused || process.dead) return;
  process.node->on_wake(now);
  while (process.uplink.has_room(now, network_) && process.node->poll_train(now, buffer_))
    launch(now, rank, buffer_.train());
  for (const Seat* seat : process.seats) {
    CoreObserver* const observer = communicators_[seat->communicator].observer;
    if (observer != nullptr) observer->on_pumped(now, seat->rank, seat->member->engine());
  }
  // Clients join and leave communicators from here.
  for (std::size_t i = process.seats.size(); i-- > 0 && !process.dead;) {
    if (i < process.seats.size()) settle(now, *process.seats[i]);
  }
  if (!process.dead && !process.pump_due) arm(now, rank);
}

// Tells who waits for it that a call is over, or that a rank has left.
void CoreEndpoints::settle(Instant now, Seat& seat) {
  if (seat.client != nullptr && is_done(seat)) finish_call(now, seat);
  if (seat.aborted) return part(seat);
  if (seat.leaver == nullptr || !seat.member->engine().endpoint().left()) return;
  Client* const leaver = std::exchange(seat.leaver, nullptr);
  seat.communicator == 0 ? kill(now, seat.process) : part(seat);
  leaver->on_left(now, seat.rank);
}

// What the rank asked the core for.
std::span<const collective::Request> CoreEndpoints::requests_of(const Seat& seat) {
  if (seat.call.spec != nullptr) return {&seat.request, 1};
  return seat.messages;
}

// What it consists of.
std::span<const collective::Request> CoreEndpoints::parts_of(const Seat& seat) {
  if (seat.call.spec != nullptr && seat.request.group != nullptr)
    return seat.request.group->messages();
  return requests_of(seat);
}

bool CoreEndpoints::is_done(const Seat& seat) {
  const auto requests = requests_of(seat);
  return std::all_of(requests.begin(), requests.end(),
                     [](const collective::Request& request) { return request.done; });
}

void CoreEndpoints::launch(Instant now, std::uint32_t rank, const Train& train) {
  const bool seals = processes_[rank].seals != nullptr;
  const ByteSpan bytes = seals ? seal_train(now, rank, train) : in_a_row(train);
  const std::size_t segment_bytes = train.segment_bytes + (seals ? seal::kOverheadBytes : 0);
  for (std::size_t at = 0; at < bytes.size(); at += segment_bytes) {
    const ByteSpan datagram = bytes.subspan(at, std::min(segment_bytes, bytes.size() - at));
    const bool shared = train.to == kEveryRank;
    const auto& hearers = processes_[rank].hearers;
    if (shared && hearers.empty()) continue;  // the first switch drops it
    const Traffic traffic = traffic_of(contents_of(datagram));
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

ByteSpan CoreEndpoints::seal_train(Instant now, std::uint32_t rank, const Train& train) {
  sealed_.resize(seal::Associations::sealed_bytes(train));
  (void)processes_[rank].seals->seal(now, train, sealed_);
  return sealed_;
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
  Process& process = processes_[rank];
  std::optional<Instant> wake = process.node->next_wake();
  const Instant writable = process.uplink.writable_at();
  if (writable > now && (!wake || writable < *wake)) wake = writable;
  if (!wake) return;
  const Instant at = std::max(*wake, now + Duration(1));
  if (at >= process.wake_at) return;  // an earlier one is armed already and will look again
  process.wake_at = at;
  queue_.push(at, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::wake));
}

void CoreEndpoints::finish_call(Instant now, Seat& seat) {
  const CallResult result = result_of(now, seat);
  CoreObserver* const observer = communicators_[seat.communicator].observer;
  if (observer != nullptr) observer->on_done(now, seat.rank, seat.call, result);
  std::exchange(seat.client, nullptr)->on_done(now, seat.rank, result);
}

CallResult CoreEndpoints::result_of(Instant now, const Seat& seat) {
  const std::span<const collective::Request> requests = requests_of(seat);
  CallResult result;
  result.submitted_ns = requests.empty() ? now.ns : requests[0].submitted.ns;
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
  if (seat.call.kind == CallKind::messages) result.messages = parts_of(seat);
  if (seat.call.spec == nullptr) return result;
  result.contributors_mean = seat.request.report.contributors.mean;
  result.contributors_min = seat.request.report.contributors.min;
  result.report = &seat.request.report;
  return result;
}

void CoreEndpoints::set_calm() {
  for (Process& process : processes_) process.faults.reset();
}

// ---- faults of a process ------------------------------------------------------------------------

void CoreEndpoints::pause(Instant, std::uint32_t rank) {
  processes_[rank].paused = true;
}

void CoreEndpoints::resume(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  if (!process.paused) return;
  process.paused = false;
  for (const Kept& kept : process.socket) hand_in_kept(now, rank, kept);
  process.socket.clear();
  process.socket_bytes = 0;
  want_pump(now, rank);
}

void CoreEndpoints::kill(Instant, std::uint32_t rank) {
  Process& process = processes_[rank];
  process.dead = true;
  for (const Kept& kept : process.socket) network_.payloads().release(kept.payload);
  process.socket.clear();
}

bool CoreEndpoints::idle() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
    return process.dead ||
           std::all_of(process.seats.begin(), process.seats.end(),
                       [](const Seat* seat) { return seat->member->engine().idle(); });
  });
}

}  // namespace leeway::sim
