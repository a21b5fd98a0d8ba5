#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/contracts.h"
#include "base/limits.h"
#include "base/marks.h"
#include "protocol/window.h"
#include "scenario/rank_set.h"

namespace leeway::sim {
namespace {

// Least round trip time that timers assume before the first answer. If the round trip on the empty
// network is longer, timers assume that one.
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
  config.one_host = operation.one_host();
  config.sum_payloads = scenario.contents() && !scenario.has_sealing();
  config.peer_timeout = Duration(static_cast<std::int64_t>(operation.peer_timeout_ms() * 1e6));
  const bool paced = scenario.congestion().control() != scenario::Congestion::none;
  const auto window = [&](bool sender_is_paced, std::size_t wanted) {
    return protocol::window_bytes(operation.socket_bytes(), topology.ranks() - 1, sender_is_paced,
                                  wanted);
  };
  if (paced) config.peers_window_bytes = window(false, 0);
  config.window_bytes.assign(topology.ranks(), window(paced, operation.window_bytes()));
  return config;
}

Duration initial_round_trip(const Topology& topology, std::uint32_t self) {
  std::int64_t longest = kRttLeast.count();
  for (std::uint32_t peer = 0; peer < topology.ranks(); ++peer) {
    if (peer != self) longest = std::max(longest, topology.round_trip_ns(self, peer));
  }
  return Duration(longest);
}

congestion::Settings congestion_of(const scenario::Scenario& scenario) {
  static_assert(static_cast<int>(CongestionControl::fabric) == scenario::Congestion::fabric);
  const scenario::Congestion& given = scenario.congestion();
  return {.control = static_cast<CongestionControl>(given.control()),
          .rate_bits_per_second = static_cast<std::uint64_t>(given.rate_mbps() * 1e6)};
}

}  // namespace

Result<std::unique_ptr<CoreEndpoints>> CoreEndpoints::make(const scenario::Scenario& scenario,
                                                           std::uint64_t seed,
                                                           const Topology& topology,
                                                           EventQueue& queue, Network& network) {
  auto endpoints = std::unique_ptr<CoreEndpoints>(
      new CoreEndpoints(queue, network, scenario.contents(), scenario.operation().datagram_bytes(),
                        scenario.operation().socket_bytes()));
  if (Status status = endpoints->set_up_processes(scenario, seed, topology); !status.ok())
    return status;
  std::vector<Rank> all(topology.ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  endpoints->add(endpoints->configs_[0].epoch, std::move(all), nullptr);
  for (Seat& seat : endpoints->communicators_[0].seats) endpoints->join(Instant{0}, seat);
  endpoints->set_up_sealing(scenario);
  if (Status status = endpoints->set_up_multicast(scenario); !status.ok()) return status;
  network.attach(Traffic::data, *endpoints);
  network.attach(Traffic::control, *endpoints);
  return endpoints;
}

Status CoreEndpoints::set_up_processes(const scenario::Scenario& scenario, std::uint64_t seed,
                                       const Topology& topology) {
  const std::uint32_t lanes = scenario.operation().lanes();
  ecn_capable_ = slows_for_marks(congestion_of(scenario).control);
  processes_.resize(std::size_t{topology.ranks()} * lanes);
  protocol::EndpointConfig config = config_of(scenario, seed, topology);
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    config.self = static_cast<Rank>(rank);
    config.rtt_initial = initial_round_trip(topology, rank);
    configs_.push_back(config);
  }
  for (std::uint32_t number = 0; number < processes_.size(); ++number) {
    Process& process = processes_[number];
    const bool first = lane_of(number) == 0;
    process.node = std::make_unique<collective::Node>(first ? congestion_of(scenario)
                                                            : congestion::Settings());
    if (!first) (void)process.node->pace_with(Instant{0}, *processes_[rank_of(number)].node);
    if (lanes > 1) process.node->wake_by([this, number] { want_pump(queue_.now(), number); });
    if (scenario.narrow_size() > 0) {
      process.node->measure_sizes({.most = config.datagram_bytes,
                                   .around = scenario.has_sealing() ? seal::kOverheadBytes : 0});
      process.arriving.resize(topology.ranks());
    }
    process.uplink = Uplink(topology, rank_of(number));
    if (!scenario.operation().has_inject()) continue;
    auto faults = parse_faults(scenario.operation().inject());
    if (!faults.ok()) return faults.status();
    faults->seed += lane_of(number);
    auto plan = impairment::FaultPlan::create(*faults);
    if (!plan.ok()) return plan.status();
    process.faults = std::move(*plan);
  }
  return {};
}

// Gives each process the keys that a rendezvous of all processes would give.
void CoreEndpoints::set_up_sealing(const scenario::Scenario& scenario) {
  if (!scenario.has_sealing()) return;
  const seal::Rotation rotation{
      .datagrams = scenario.sealing().phase_datagrams(),
      .time = Duration(static_cast<std::int64_t>(scenario.sealing().phase_ms() * 1e6))};
  addresses_.emplace(static_cast<std::uint32_t>(processes_.size()));
  for (const auto& translator : scenario.translator()) {
    const auto ranks = scenario::ranks_of(scenario, translator.ranks());
    LEEWAY_ASSERT(ranks.ok());  // the scenario is valid
    for (const std::uint32_t rank : *ranks)
      addresses_->translate(rank, Duration(static_cast<std::int64_t>(translator.idle_ms() * 1e6)),
                            translator.symmetric());
  }
  const Duration keep_alive(static_cast<std::int64_t>(scenario.sealing().keep_alive_ms() * 1e6));
  for (Rank self = 0; self < processes_.size(); ++self) {
    processes_[self].roaming = std::make_unique<seal::Roaming>(self, keep_alive);
    processes_[self].exchange = std::make_unique<NullExchange>(self);
    processes_[self].seals =
        std::make_unique<seal::Associations>(std::uint8_t{0}, rotation, *processes_[self].exchange);
    for (Rank peer = 0; peer < processes_.size(); ++peer) {
      if (peer == self) continue;
      processes_[self].seals->meet(Instant{0}, peer, null_keys(self, peer), null_cipher());
      const NetworkAddress told = addresses_->told(peer);
      processes_[self].roaming->meet(Instant{0}, peer, {&told, 1}, peer + 1u);
      processes_[self].forwarding.meet(peer, peer + 1u);
    }
    want_pump(Instant{0}, self);
  }
}

// Lets ranks find out by probes, before the first call, which ranks hear their multicast. The ranks
// of a new Communicator do the same.
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
                                 CoreObserver* observer, std::uint32_t lane) {
  const auto number = static_cast<std::uint32_t>(communicators_.size());
  Communicator& made = communicators_.emplace_back();
  made.epoch = epoch;
  made.lane = lane;
  made.observer = observer;
  made.seats.resize(processes.size());
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    Seat& seat = made.seats[rank];
    seat.process = processes[rank] + lane * ranks();
    seat.communicator = number;
    seat.rank = rank;
  }
  made.processes = std::move(processes);
  return number;
}

void CoreEndpoints::join(Instant now, Seat& seat) {
  const Communicator& communicator = communicators_[seat.communicator];
  Process& process = processes_[seat.process];
  protocol::EndpointConfig config = configs_[rank_of(seat.process)];
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
  process.lobby.take(opened.epoch, [&](Rank sender, ByteSpan bytes) {
    const Rank from = seat.member->rank_in(sender);
    if (from != kNoRank) opened.observer->on_datagram(now, rank, from, bytes);
  });
  want_pump(now, seat.process);
  return seat.member->engine();
}

// ---- time, and faults of a process --------------------------------------------------------------

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

void CoreEndpoints::set_calm() {
  for (Process& process : processes_) process.faults.reset();
}

// Pauses all lanes of a process.
void CoreEndpoints::pause(Instant, std::uint32_t rank) {
  for (std::size_t lane = rank; lane < processes_.size(); lane += ranks())
    processes_[lane].paused = true;
}

void CoreEndpoints::resume(Instant now, std::uint32_t rank) {
  for (std::uint32_t lane = rank; lane < processes_.size(); lane += ranks()) {
    Process& process = processes_[lane];
    if (!process.paused) continue;
    process.paused = false;
    for (const Kept& kept : process.socket) hand_in_kept(now, lane, kept);
    process.socket.clear();
    process.socket_bytes = 0;
    want_pump(now, lane);
  }
}

void CoreEndpoints::kill(Instant, std::uint32_t rank) {
  for (std::size_t lane = rank; lane < processes_.size(); lane += ranks()) {
    Process& process = processes_[lane];
    process.dead = true;
    for (const Kept& kept : process.socket) network_.payloads().release(kept.payload);
    process.socket.clear();
    for (const Onward& onward : process.onward) network_.payloads().release(onward.payload);
    process.onward.clear();
  }
}

void CoreEndpoints::change_address(std::uint32_t rank, bool port_only) {
  port_only ? addresses_->rebind(rank) : addresses_->move(rank);
}

bool CoreEndpoints::idle() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
    const auto at_rest = [](const Seat* seat) { return seat->member->engine().idle(); };
    return process.dead || (process.onward.empty() &&
                            std::all_of(process.seats.begin(), process.seats.end(), at_rest));
  });
}

}  // namespace leeway::sim
