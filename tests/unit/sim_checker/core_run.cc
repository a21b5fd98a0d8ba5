#include "core_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"
#include "codec/codec.h"
#include "scenario/parse.h"
#include "schedule/shard_map.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;

leeway::Delivery::Kind kind_of(scenario::Delivery::Kind kind) {
  return static_cast<leeway::Delivery::Kind>(kind);
}

Duration milliseconds(double ms) {
  return Duration(static_cast<std::int64_t>(ms * 1e6));
}

}  // namespace

scenario::Scenario scenario_of(const std::string& text) {
  const auto parsed = scenario::parse_text(text, "test");
  if (parsed.ok()) return *parsed;
  ADD_FAILURE() << parsed.status().text();
  return {};
}

CoreRun::CoreRun(const std::string& text, std::uint64_t seed, Lies lies)
    : scenario_(scenario_of(text)), seed_(seed), lies_(std::move(lies)) {
  topology_.emplace(Topology::make(scenario_).value());
  const std::size_t datagram_bytes = scenario_.operation().datagram_bytes();
  network_ = Network::make(*topology_, seed, queue_, datagram_bytes).value();
  core_ = CoreEndpoints::make(scenario_, seed, *topology_, queue_, *network_).value();
  CheckerSetup setup{.links = topology_->links()};
  for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank)
    setup.engines.push_back(&core_->engine(rank));
  checkers_ = std::make_unique<Checkers>(scenario_, seed, setup);
  core_->observe(this);
  network_->observe(this);
  ranks_.resize(scenario_.ranks());
  const std::size_t elements = scenario_.operation().bytes() / sizeof(float);
  for (RankState& state : ranks_) {
    state.gradient.resize(elements);
    state.result.resize(elements);
    state.parameters.assign(elements, 1.0f);
    if (scenario_.operation().error_feedback()) state.residual.assign(elements, 0.0f);
  }
}

std::vector<CallKind> CoreRun::calls() const {
  using scenario::Operation;
  switch (scenario_.operation().kind()) {
    case Operation::all_reduce:
      return {CallKind::all_reduce};
    case Operation::reduce_scatter:
      return {CallKind::reduce_scatter};
    case Operation::all_gather:
      return {CallKind::all_gather};
    case Operation::broadcast:
      return {CallKind::broadcast};
    case Operation::all_to_all:
      return {CallKind::all_to_all};
    case Operation::replica_step:
      return {CallKind::replica_reduce, CallKind::replica_broadcast};
    default:  // sim_run_test has the operations with a root, and messages
      return {};
  }
}

// ---- what the ranks do --------------------------------------------------------------------------

void CoreRun::fill(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  // Only each round's first value is hashed, and a multiplicative sequence gives the others. A hash
  // for each element took most of these tests' time under sanitizers.
  std::uint64_t bits = keyed_hash(seed_, 0, rank, state.round, 0);
  for (float& value : state.gradient) {
    value = static_cast<float>(to_unit(bits)) - 0.25f;
    bits += 0x9e3779b97f4a7c15u;
  }
  std::fill(state.result.begin(), state.result.end(), 0.0f);
}

collective::OperationSpec CoreRun::spec_of(std::uint32_t rank, CallKind kind) {
  RankState& state = ranks_[rank];
  const auto& operation = scenario_.operation();
  const std::size_t block = state.gradient.size() / ranks_.size();
  state.weights.clear();
  collective::OperationSpec spec;
  spec.options.delivery = {kind_of(operation.delivery().kind()), operation.delivery().loss_max(),
                           milliseconds(operation.delivery().deadline_ms())};
  spec.options.spread = kind_of(operation.spread());
  spec.options.codec = *parse_codec(operation.codec());
  spec.options.estimator = static_cast<Estimator>(operation.estimator());
  const std::span gradient(state.gradient);
  const std::span result(state.result);
  spec.input = gradient;
  spec.output = result;
  if (kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
      kind == CallKind::replica_reduce) {
    spec.options.op = ReduceOp::avg;
    spec.options.residual = state.residual;
    if (operation.owner_weights()) {
      for (std::size_t owner = 0; owner < ranks_.size(); ++owner)
        state.weights.push_back(1.0 + static_cast<double>((rank + owner) % 3));
      spec.options.owner_weights = state.weights;
    }
  } else {
    spec.options.spread = Delivery::Kind::exact;
  }
  switch (kind) {
    case CallKind::all_reduce:
      spec.kind = OperationKind::all_reduce;
      break;
    case CallKind::reduce_scatter:
      spec.kind = OperationKind::reduce_scatter;
      spec.output = result.first(block);
      spec.input = gradient.first(block * ranks_.size());
      break;
    case CallKind::all_gather:
      spec.kind = OperationKind::all_gather;
      spec.input = gradient.first(block);
      spec.output = result.first(block * ranks_.size());
      break;
    case CallKind::broadcast:
      spec.kind = OperationKind::broadcast;
      spec.peer = 0;
      std::copy(gradient.begin(), gradient.end(), result.begin());
      break;
    case CallKind::all_to_all:
      spec.kind = OperationKind::all_to_all;
      spec.input = gradient.first(block * ranks_.size());
      spec.output = result.first(block * ranks_.size());
      break;
    case CallKind::replica_reduce:
      spec.kind = OperationKind::replica_reduce;
      break;
    case CallKind::replica_broadcast:
      spec.kind = OperationKind::replica_broadcast;
      spec.input = spec.output = std::span(state.parameters);
      spec.options.delivery = {kind_of(operation.replica().delivery()), 1.0,
                               milliseconds(operation.replica().deadline_ms())};
      spec.options.spread = spec.options.delivery.kind;
      spec.options.codec = *parse_codec(operation.replica().codec());
      spec.ledger = &state.ledger;
      prepare_ages(rank);
      break;
    default:  // calls() returns no other kind
      break;
  }
  return spec;
}

void CoreRun::prepare_ages(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const auto& operation = scenario_.operation();
  const auto format = codec::format_of(*parse_codec(operation.replica().codec()), DataType::f32);
  const std::size_t per_packet =
      format.elements_for(operation.datagram_bytes() - wire::kDataHeaderBytes);
  const auto size = static_cast<int>(ranks_.size());
  state.ledger.required.resize(ranks_.size());
  state.ledger.arrived.resize(ranks_.size());
  state.ages.resize(ranks_.size());
  for (Rank owner = 0; owner < size; ++owner) {
    const std::size_t count = schedule::ShardMap::even(state.parameters.size(), size)[owner].count;
    const std::size_t blocks = owner == rank ? 0 : (count + per_packet - 1) / per_packet;
    state.ages[owner].resize(blocks);
    state.ledger.required[owner].resize(blocks);
    state.ledger.arrived[owner].resize(blocks);
    for (std::size_t block = 0; block < blocks; ++block) {
      if (refresh_old && state.ages[owner][block] >= operation.replica().age_max())
        state.ledger.required[owner].set(block);
    }
  }
  const schedule::Shard own =
      schedule::ShardMap::even(state.parameters.size(), size)[static_cast<Rank>(rank)];
  for (std::size_t i = 0; i < own.count; ++i)
    state.parameters[own.offset + i] -= 0.125f * state.result[own.offset + i];
}

void CoreRun::take_ages(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  for (std::size_t owner = 0; owner < ranks_.size(); ++owner) {
    for (std::size_t block = 0; block < state.ages[owner].size(); ++block) {
      std::uint32_t& age = state.ages[owner][block];
      age = state.ledger.arrived[owner].test(block) ? 0 : age + 1;
    }
  }
}

void CoreRun::submit(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.call == 0) fill(rank);
  const CallKind kind = calls()[state.call];
  state.spec = spec_of(rank, kind);
  core_->submit(now, rank,
                {.kind = kind,
                 .round = state.round,
                 .bytes = state.gradient.size() * sizeof(float),
                 .spec = &state.spec},
                *this);
}

void CoreRun::on_done(Instant now, std::uint32_t rank, const CallResult&) {
  RankState& state = ranks_[rank];
  if (calls()[state.call] == CallKind::replica_broadcast) take_ages(rank);
  if (++state.call == calls().size()) {
    state.call = 0;
    ++state.round;
    const std::uint32_t slowest =
        std::min_element(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
          return a.round < b.round;
        })->round;
    if (slowest == state.round) checkers_->on_round_end(now, slowest - 1, *network_);
  }
  state.finished = state.round == scenario_.rounds();
  if (!state.finished) submit(now, rank);
}

bool CoreRun::finished() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const RankState& state) { return state.finished; });
}

std::vector<CheckRecord> CoreRun::run() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) submit(queue_.now(), rank);
  Event event;
  while (!(finished() && core_->idle() && network_->under_way(Traffic::data) == 0 &&
           network_->under_way(Traffic::control) == 0) &&
         queue_.pop(event)) {
    if (event.kind == static_cast<std::uint32_t>(EventKind::network)) network_->on_event(event);
    if (event.kind == static_cast<std::uint32_t>(EventKind::endpoint)) core_->on_event(event);
    if (event.kind == static_cast<std::uint32_t>(EventKind::fault))
      on_fault(queue_.now(), event.target, event.argument != 0);
  }
  EXPECT_TRUE(finished());
  return checkers_->finish(queue_.now(), *network_, core_->idle());
}

void CoreRun::pause(std::uint32_t rank, Instant from, Instant until) {
  queue_.push(from, rank, static_cast<std::uint32_t>(EventKind::fault), 1);
  queue_.push(until, rank, static_cast<std::uint32_t>(EventKind::fault), 0);
}

void CoreRun::on_fault(Instant now, std::uint32_t rank, bool begins) {
  if (begins) {
    core_->pause(now, rank);
    checkers_->on_pause(now, rank);
  } else {
    core_->resume(now, rank);
    checkers_->on_resume(now, rank);
  }
}

// ---- what the checkers are told -----------------------------------------------------------------

void CoreRun::on_submit(Instant now, std::uint32_t rank, const Call& call) {
  checkers_->on_submit(now, rank, call);
}

void CoreRun::on_datagram(Instant now, std::uint32_t rank, std::uint32_t from, ByteSpan datagram) {
  const int copies = lies_.copies ? lies_.copies(rank, from, datagram) : 1;
  std::vector<std::byte> bytes(datagram.begin(), datagram.end());
  if (lies_.datagram) lies_.datagram(rank, bytes);
  for (int copy = 0; copy < copies; ++copy) checkers_->on_datagram(now, rank, from, bytes);
}

void CoreRun::on_done(Instant now, std::uint32_t rank, const Call& call, const CallResult& result) {
  if (!lies_.outcome && lies_.delay_of_return.count() == 0)
    return checkers_->on_done(now, rank, call, result);
  CallResult lie = result;
  CollectiveReport report = *result.report;
  lie.report = &report;
  const std::span values(static_cast<float*>(call.spec->output.data), call.spec->output.count);
  const std::vector<float> truth(values.begin(), values.end());
  if (lies_.outcome) lies_.outcome(rank, call, lie, report, values);
  checkers_->on_done(now + lies_.delay_of_return, rank, call, lie);
  std::copy(truth.begin(), truth.end(), values.begin());
}

void CoreRun::on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) {
  checkers_->on_pumped(now, rank, engine);
}

void CoreRun::on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                        ByteSpan payload) {
  Packet lie = packet;
  if (lies_.packet && !lies_.packet(step, lie)) return;
  checkers_->packets()->on_packet(now, step, link, lie, payload);
}

const CheckRecord& record_of(const std::vector<CheckRecord>& records, const std::string& id) {
  return *std::find_if(records.begin(), records.end(),
                       [&](const CheckRecord& record) { return record.id == id; });
}

std::string failed(const std::vector<CheckRecord>& records) {
  std::string text;
  std::string first;
  for (const CheckRecord& record : records) {
    if (record.verdict != Verdict::failed) continue;
    text += (text.empty() ? "" : " ") + record.id;
    if (first.empty()) first = ": " + record.first_failure;
  }
  return text + first;
}

}  // namespace leeway::sim
