// Calls: opening, settling, finishing. After src/protocol/endpoint.cc.
#include "endpoint/abstract_endpoints.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/philox.h"
#include "protocol/train_buffer.h"

namespace leeway::sim {
namespace {

// As in core_endpoints.cc: what a socket holds, the library's default window, what waits in front
// of an uplink, the least round trip that is assumed before one is measured.
constexpr std::uint64_t kSocketBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kWindowBytesDefault = std::uint64_t{1} << 20;
constexpr std::int64_t kRttLeastNs = 100'000;

constexpr std::uint32_t kWindowMax = 1u << 14;  // kSequenceBits tells twice that apart

// Reports count as datagrams, too. Were each datagram reported, reports would answer reports for
// ever.
constexpr std::uint32_t kReportEveryLeast = 2;

// Stream tag of the rotation keys, as in protocol/endpoint.cc.
constexpr std::uint32_t kRotationStream = 0x50000000;

// Calls of which starting packets are kept: more than can be under way at once.
constexpr std::uint32_t kCallsKept = 1u << kOpenedBits;

}  // namespace

Result<std::unique_ptr<AbstractEndpoints>> AbstractEndpoints::make(
    const scenario::Scenario& scenario, std::uint64_t seed, const Topology& topology,
    EventQueue& queue, Network& network) {
  if (scenario.operation().has_inject()) {
    return Status::error(
        StatusCode::kUnsupported,
        "operation.inject is decided by packets' places in the core's order, which "
        "endpoint abstract does not have; use a link's loss");
  }
  auto operation = AbstractOperation::make(scenario.operation());
  if (!operation.ok()) return operation.status();
  auto endpoints = std::unique_ptr<AbstractEndpoints>(new AbstractEndpoints(queue, network));
  endpoints->operation_ = *operation;
  endpoints->seed_ = seed;
  endpoints->set_up(scenario, topology);
  network.attach(Traffic::data, *endpoints);
  network.attach(Traffic::control, *endpoints);
  return endpoints;
}

void AbstractEndpoints::set_up(const scenario::Scenario& scenario, const Topology& topology) {
  size_ = topology.ranks();
  const auto& operation = scenario.operation();
  const std::uint64_t share = kSocketBytes / std::max<std::uint32_t>(1, size_ - 1);
  const std::uint64_t wanted =
      operation.window_bytes() != 0 ? operation.window_bytes() : kWindowBytesDefault;
  const std::uint64_t window = std::min(share, wanted) / operation.datagram_bytes();
  window_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(window, 2, kWindowMax));
  report_every_ = std::max(window_ / 4, kReportEveryLeast);
  starts_.resize(kCallsKept);
  ranks_.resize(size_);
  links_.resize(std::size_t{size_} * size_);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    AbstractRank& node = ranks_[rank];
    node.control.items.resize(size_);
    node.data.items.resize(size_);
    node.uplink = Uplink(topology, rank);
    std::int64_t longest = kRttLeastNs;
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      if (peer != rank) longest = std::max(longest, topology.round_trip_ns(rank, peer));
    }
    for (std::uint32_t peer = 0; peer < size_; ++peer) link(rank, peer).set_round_trip(longest);
  }
}

const AbstractPlan& AbstractEndpoints::plan_of(const Call& call) {
  for (const auto& plan : plans_) {
    if (plan->kind == call.kind && plan->bytes == call.bytes) return *plan;
  }
  plans_.push_back(
      std::make_unique<AbstractPlan>(make_abstract_plan(operation_, call.kind, call.bytes, size_)));
  return *plans_.back();
}

void AbstractEndpoints::submit(Instant now, std::uint32_t rank, const Call& call, Client& client) {
  AbstractRank& node = ranks_[rank];
  LEEWAY_ASSERT(node.done && !node.result_due);
  if (node.dead) return;
  keep_lingering(rank);
  node.plan = &plan_of(call);
  node.client = &client;
  ++node.opened;
  node.submitted_ns = now.ns;
  open(now, rank);
  announce(now, rank);
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    if (!node.plan->halves[half].active) continue;
    const std::int64_t length =
        half == kReduceHalf ? node.plan->reduce_deadline_ns : node.plan->deadline_ns;
    queue_.push(now + Duration(length), rank, static_cast<std::uint32_t>(EventKind::endpoint),
                static_cast<std::uint64_t>(Step::deadline) | std::uint64_t(half) << 8 |
                    std::uint64_t{node.opened} << 32);
  }
  replay_early(now, rank);
  follow_up(now, rank);
}

// The packet with which all senders start that send an owner's shard.
std::uint32_t AbstractEndpoints::start_of(std::uint32_t opened, std::uint32_t owner,
                                          std::uint32_t packets) const {
  if (packets == 0) return 0;
  const std::uint64_t key = keyed_hash(seed_, opened - 1, kRotationStream | kReduceHalf, owner, 0);
  return static_cast<std::uint32_t>(keyed_hash(key, 0, 0, 0, 0) % packets);
}

void AbstractEndpoints::keep_lingering(std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  std::erase_if(node.lingering, [](const AbstractLingering& entry) { return entry.flow.settled; });
  if (node.closed) return;
  const std::size_t before = node.lingering.size();
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    for (const int half : {kReduceHalf, kSpreadHalf}) {
      const AbstractSendFlow& flow = link(rank, peer).send[half];
      if (flow.settled) continue;
      node.lingering.push_back(
          {peer, node.opened, half, node.plan, node.submitted_ns + node.plan->deadline_ns, flow});
      ++link(rank, peer).lingering;
    }
  }
  if (before == 0) return;
  std::stable_sort(
      node.lingering.begin(), node.lingering.end(),
      [](const AbstractLingering& a, const AbstractLingering& b) { return a.peer < b.peer; });
}

void AbstractEndpoints::open(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  Starts& starts = starts_[node.opened % kCallsKept];
  const AbstractHalf& reduce = node.plan->halves[kReduceHalf];
  if (starts.opened != node.opened) {
    starts.opened = node.opened;
    starts.by_owner.resize(size_);
    for (std::uint32_t owner = 0; owner < size_; ++owner) {
      starts.by_owner[owner] =
          reduce.active ? start_of(node.opened, owner, reduce.packets[owner]) : 0;
    }
  }
  node.shard.begin(*node.plan, rank, starts.by_owner[rank]);
  node.ledger.assign(node.plan->ledger_words(rank), 0);
  node.expected = node.arrived = node.repaired = node.bytes_sent = 0;
  node.status = Status();
  node.deadline_cut = node.done = node.closed = node.release_due = false;
  for (const int half : {kReduceHalf, kSpreadHalf})
    node.phases[half] = {.settled = !node.plan->halves[half].active};
  const bool quiet = node.lingering.empty();
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (quiet) link(rank, peer).gap_paused = true;
    if (peer != rank) open_flows(now, rank, peer);
  }
}

void AbstractEndpoints::open_flows(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  to.passed = 0;
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    const std::uint32_t out = node.plan->flow_packets(half, rank, peer);
    const std::uint32_t in = node.plan->flow_packets(half, peer, rank);
    to.send[half] = AbstractSendFlow{};
    to.receive[half] = AbstractReceiveFlow{};
    to.receive[half].last_ns = now.ns;
    to.send[half].settled = out == 0;
    to.receive[half].finished = in == 0;
    node.phases[half].sends_open += out != 0;
    node.phases[half].passes_open += out != 0;
    node.phases[half].receives_open += in != 0;
    node.expected += in;
  }
}

// Destinations are taken in the order after our own rank, so that no receiver is everybody's first.
void AbstractEndpoints::announce(Instant now, std::uint32_t rank) {
  const AbstractPlan& plan = *ranks_[rank].plan;
  for (std::uint32_t step = 1; step < size_; ++step) {
    const std::uint32_t peer = after(rank, step);
    bool sends = false;
    bool needs_gate = false;
    for (const int half : {kReduceHalf, kSpreadHalf}) {
      const std::uint32_t out = plan.flow_packets(half, rank, peer);
      const std::uint32_t in = plan.flow_packets(half, peer, rank);
      sends |= out != 0;
      needs_gate |= in > limits::kEagerPackets || (in != 0 && out == 0);
    }
    if (sends) queue_data(rank, peer);
    if (needs_gate) queue_report(rank, peer);
    arm(now, rank, peer, now + Duration(link(rank, peer).timeout_ns(0)));
  }
}

void AbstractEndpoints::replay_early(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  if (node.early.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < node.early.size(); ++i) {
    const AbstractRank::Early early = node.early[i];
    const AbstractWord word(early.word);
    if (nearest_count(word.opened(), node.opened, kOpenedBits) != node.opened) {
      node.early[kept++] = early;
      continue;
    }
    --link(rank, early.from).early;
    accept(now, rank, early.from, word);
  }
  node.early.resize(kept);
}

void AbstractEndpoints::settle_send(std::uint32_t rank, std::uint32_t peer, int half) {
  AbstractSendFlow& flow = link(rank, peer).send[half];
  if (flow.settled) return;
  AbstractPhase& phase = ranks_[rank].phases[half];
  if (!flow.pass_over) --phase.passes_open;
  flow.settled = true;
  flow.end_due = false;
  --phase.sends_open;
}

void AbstractEndpoints::finish_receive(Instant now, std::uint32_t rank, std::uint32_t peer,
                                       int half) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& from = link(rank, peer);
  AbstractReceiveFlow& flow = from.receive[half];
  LEEWAY_ASSERT(!flow.finished);
  flow.finished = true;
  flow.request_due = false;
  --node.phases[half].receives_open;
  ++from.unreported_settles;
  const AbstractPlan& plan = *node.plan;
  // An owner spreads only what it has settled: its complete shard confirms our part of it.
  const bool complete = flow.arrived == plan.flow_packets(half, peer, rank);
  if (half == kSpreadHalf && complete && plan.halves[kReduceHalf].active)
    settle_send(rank, peer, kReduceHalf);
  // A caller waits for this confirmation unless nothing can be asked for again, a copy was kept, or
  // our result will tell.
  const bool result_tells = half == kReduceHalf && plan.halves[kSpreadHalf].active;
  const bool awaited = plan.halves[half].repairable && !plan.halves[half].retained && !result_tells;
  if (awaited || from.unreported_settles >= 4) return queue_report(rank, peer);
  const Instant at = now + 2 * Duration(limits::kTickNs);
  const AbstractTick tick = AbstractTick::at(at);
  if (!from.report_at.set() || tick.before(from.report_at)) from.report_at = tick;
  arm(now, rank, peer, at);
}

bool AbstractEndpoints::may_go(const AbstractRank& node) const {
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    const AbstractPhase& phase = node.phases[half];
    if (!phase.settled) return false;
    const AbstractHalf& plan = node.plan->halves[half];
    const bool never_again = !plan.repairable || plan.retained;
    if (phase.sends_open != 0 && (phase.passes_open != 0 || !never_again)) return false;
  }
  return true;
}

void AbstractEndpoints::advance(std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  if (node.closed) return;
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    AbstractPhase& phase = node.phases[half];
    if (phase.settled || phase.receives_open != 0) continue;
    phase.settled = true;
    if (half == kReduceHalf) node.release_due |= node.shard.settle();
  }
  if (!node.done && may_go(node)) {
    node.done = true;
    node.result_due = true;
  }
  node.closed = node.done && node.phases[kReduceHalf].sends_open == 0 &&
                node.phases[kSpreadHalf].sends_open == 0;
}

// Over, whatever is still open.
void AbstractEndpoints::finish(std::uint32_t rank, const Status& status) {
  AbstractRank& node = ranks_[rank];
  if (!node.done) {
    node.done = true;
    node.result_due = true;
    node.status = status;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    for (const int half : {kReduceHalf, kSpreadHalf}) {
      settle_send(rank, peer, half);
      AbstractReceiveFlow& flow = link(rank, peer).receive[half];
      if (!flow.finished) --node.phases[half].receives_open;
      flow.finished = true;
      flow.request_due = false;
    }
  }
  for (AbstractPhase& phase : node.phases) phase.settled = true;
  node.closed = true;
}

void AbstractEndpoints::tell(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  node.result_due = false;
  CallResult result;
  result.status = node.status;
  result.submitted_ns = node.submitted_ns;
  result.done_ns = now.ns;
  result.expected = node.expected;
  result.arrived = node.arrived;
  result.arrived_first = node.arrived - node.repaired;
  result.bytes_sent = node.bytes_sent;
  if (node.plan->halves[kReduceHalf].active) {
    result.contributors_mean = node.shard.contributors_mean();
    result.contributors_min = node.shard.contributors_min();
  }
  result.deadline_cut = node.deadline_cut;
  node.client->on_done(now, rank, result);
}

void AbstractEndpoints::follow_up(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  if (node.paused) return;
  do {
    advance(rank);
    if (node.release_due) release(rank);
    pump(now, rank);
    advance(rank);  // the last pass may have been handed out
  } while (node.release_due);
  if (node.result_due) tell(now, rank);
}

// Packets of the spread half became available.
void AbstractEndpoints::release(std::uint32_t rank) {
  ranks_[rank].release_due = false;
  for (std::uint32_t step = 1; step < size_; ++step) {
    const std::uint32_t peer = after(rank, step);
    if (!link(rank, peer).send[kSpreadHalf].settled) queue_data(rank, peer);
  }
}

void AbstractEndpoints::pause(Instant, std::uint32_t rank) {
  ranks_[rank].paused = true;
}

void AbstractEndpoints::resume(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  if (!node.paused || node.dead) return;
  node.paused = false;
  std::vector<Packet> waiting;
  waiting.swap(node.socket);
  node.socket_bytes = 0;
  for (const Packet& packet : waiting) handle(now, packet);
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != rank && link(rank, peer).wake_at.due(AbstractTick::now(now)))
      wake_link(now, rank, peer);
  }
  if (node.plan != nullptr) {
    const std::int64_t spent_ns = now.ns - node.submitted_ns;
    if (spent_ns >= node.plan->reduce_deadline_ns) on_deadline(now, rank, kReduceHalf);
    if (spent_ns >= node.plan->deadline_ns) on_deadline(now, rank, kSpreadHalf);
  }
  follow_up(now, rank);
}

void AbstractEndpoints::kill(Instant, std::uint32_t rank) {
  ranks_[rank].dead = true;
  ranks_[rank].socket.clear();
}

bool AbstractEndpoints::idle() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const AbstractRank& node) {
    return node.dead ||
           (node.closed && std::all_of(node.lingering.begin(), node.lingering.end(),
                                       [](const auto& entry) { return entry.flow.settled; }));
  });
}

}  // namespace leeway::sim
