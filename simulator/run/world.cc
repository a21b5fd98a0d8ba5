#include "run/world.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/random_stream.h"
#include "run/measures.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

std::vector<Measure> communicator_measures(
    const std::vector<std::unique_ptr<FurtherCommunicator>>& communicators) {
  std::vector<Measure> measures;
  for (std::size_t number = 0; number < communicators.size(); ++number) {
    const FurtherCommunicator::Counts& counts = communicators[number]->counts();
    const std::string name = "communicator[" + std::to_string(number) + "].";
    measures.push_back({name + "opened", static_cast<double>(counts.opened)});
    measures.push_back({name + "calls", static_cast<double>(counts.calls)});
    measures.push_back({name + "failed", static_cast<double>(counts.failed)});
    measures.push_back({name + "aborted", static_cast<double>(counts.aborted)});
  }
  return measures;
}

// Number of events after which a run checks whether it was told to stop.
constexpr std::uint64_t kStopCheckEvents = 1 << 14;

}  // namespace

// ---- running ------------------------------------------------------------------------------------

Result<RunRecord> World::run() {
  cross_->start(queue_.now());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) begin_round(queue_.now(), rank);
  while (running_ > 0 && events_ < options_.events_max) {
    if (!refusal_.ok()) return refusal_;
    if (!step()) {
      return Status::error(
          StatusCode::kInternal,
          "nothing is left to happen after %.3f simulated ms, but %u ranks still wait",
          static_cast<double>(queue_.now().ns) / 1e6, running_);
    }
    if (events_ % kStopCheckEvents != 0 || options_.stop == nullptr || !*options_.stop) continue;
    return Status::error(StatusCode::kCancelled, "stopped after %zu rounds",
                         book_.records().size());
  }
  if (running_ > 0) {
    return Status::error(StatusCode::kResourceExhausted,
                         "no end after %llu events, %.3f simulated ms and %zu rounds",
                         static_cast<unsigned long long>(events_),
                         static_cast<double>(queue_.now().ns) / 1e6, book_.records().size());
  }
  return make_record();
}

// Handles one event. Returns false if no event is left.
bool World::step() {
  Event event;
  if (!queue_.pop(event)) return false;
  ++events_;
  network_->look_ahead();
  const Instant now{event.time_ns};
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::network:
      network_->on_event(event);
      break;
    case EventKind::endpoint:
      endpoints_->on_event(event);
      break;
    case EventKind::rank:
      event.argument == static_cast<std::uint64_t>(RankEvent::leaves)
          ? leave(now, event.target)
          : on_computed(now, event.target);
      break;
    case EventKind::fault:
      on_fault(now, event.target, event.argument != 0);
      break;
    case EventKind::traffic:
      cross_->on_event(event);
      break;
    case EventKind::member:
      communicators_[event.target]->on_event(event);
      break;
  }
  return true;
}

void World::begin_round(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const bool leaves_now = state.leave != nullptr && state.leave->has_from_round() &&
                          state.round == state.leave->from_round();
  const bool over = stopping_ && state.round >= rounds_begun_;
  if (over || state.round == scenario_.rounds() || leaves_now) return end_rounds(now, rank);
  rounds_begun_ = std::max(rounds_begun_, state.round + 1);
  book_.on_begin(now, state.round);
  const ComputeDraw draw = compute_->draw(now, rank, state.round);
  compute_book_.on_begin(now, state.round, draw);
  state.micro_batches = draw.micro_batches;
  state.weight = draw.weight;
  state.call = 0;
  queue_.push(now + Duration(draw.ns), rank, static_cast<std::uint32_t>(EventKind::rank), 0);
}

void World::stop_running(std::uint32_t rank) {
  if (std::exchange(ranks_[rank].running, false)) --running_;
}

// Call it when the rank has finished its rounds. If the rank is to leave, the run goes on until it
// has left the first communicator and all others.
void World::end_rounds(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  state.rounds_over = true;
  const bool busy =
      std::any_of(communicators_.begin(), communicators_.end(),
                  [&](const auto& communicator) { return communicator->is_busy(rank); });
  if (state.leave == nullptr) return busy ? void() : stop_running(rank);
  if (state.round < scenario_.rounds()) {  // the next rounds of the others do not wait for it
    book_.on_death(rank);
    close_rounds(now);
  }
  if (busy) return;
  const Duration after(ns_of_ms(state.leave->after_ms()));
  queue_.push(now + after, rank, static_cast<std::uint32_t>(EventKind::rank),
              static_cast<std::uint64_t>(RankEvent::leaves));
}

void World::on_member_finished(Instant now, std::uint32_t rank) {
  if (ranks_[rank].rounds_over && !ranks_[rank].dead) end_rounds(now, rank);
}

void World::leave(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.dead) return;
  state.leave_due = state.pauses > 0;
  if (state.leave_due) return;
  checkers_->on_leave(now, rank, state.leave->at_once());
  core_->leave(now, rank, state.leave->at_once(), *this);
}

void World::on_left(Instant now, std::uint32_t rank) {
  checkers_->on_left(now, rank);
  stop_running(rank);
}

void World::on_computed(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.dead) return;
  if (state.pauses > 0) {  // a stopped process computes nothing; it goes on where it was
    state.submit_due = true;
    return;
  }
  if (has_contents()) fill_contribution(rank);
  book_.on_submit(now, rank, state.round);
  if (rank == 0 && scenario_.has_calm_from_round() && state.round == scenario_.calm_from_round())
    become_calm(now);
  if (rank == 0 && scenario_.multicast().has_until_round() &&
      state.round == scenario_.multicast().until_round() && core_ != nullptr) {
    core_->stop_multicast();
  }
  faults_->on_submit(now, rank, state.round, queue_);
  for (const auto& communicator : communicators_) {
    const scenario::Communicator& entry = communicator->entry();
    if (!entry.split() && entry.from_round() == state.round) communicator->begin(now, rank);
  }
  submit_call(now, rank);
}

void World::fill_contribution(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  RankMemory& memory = memory_[rank];
  workload_->gradient_sum(rank, state.round, state.micro_batches, memory.gradient);
  // An element that does not arrive stays 0 in the result.
  std::fill(memory.result.begin(), memory.result.end(), 0.0f);
  book_.round(state.round).values.add_contribution(memory.gradient, state.weight);
  spoil(rank);
}

// Puts infinities and NaNs into the contribution. Call it after the reference has taken the
// contribution, so that the measured error includes what this damage does.
void World::spoil(std::uint32_t rank) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 3> kOdd = {kInfinity, -kInfinity,
                                         std::numeric_limits<float>::quiet_NaN()};
  std::vector<float>& gradient = memory_[rank].gradient;
  const std::uint64_t round = ranks_[rank].round;
  RandomStream random(seed_, round << 32 | rank, Purpose::spoil);
  if (random.unit53() >= scenario_.operation().non_finite()) return;
  for (std::uint64_t left = 1 + random.below(kOdd.size()); left > 0; --left)
    gradient[random.below(gradient.size())] = kOdd[random.below(kOdd.size())];
}

std::vector<FurtherCommunicator*> World::splits_of(std::uint32_t round) const {
  std::vector<FurtherCommunicator*> splits;
  for (const auto& communicator : communicators_) {
    const scenario::Communicator& entry = communicator->entry();
    if (entry.split() && entry.from_round() == round) splits.push_back(communicator.get());
  }
  return splits;
}

void World::submit_split(Instant now, std::uint32_t rank, const FurtherCommunicator& wanted) {
  RankState& state = ranks_[rank];
  state.wish = wanted.wish_of(rank);
  state.wishes.assign(ranks_.size(), Wish{});
  state.spec = collective::OperationSpec{.kind = collective::OperationKind::split};
  state.spec.input = {state.wish.data(), state.wish.size(), DataType::i32};
  state.spec.output = {state.wishes.data(), state.wishes.size() * state.wish.size(), DataType::i32};
  state.spec.options.delivery = exact(Duration(ns_of_ms(wanted.entry().split_deadline_ms())));
  const Call call{.kind = CallKind::split,
                  .round = state.round,
                  .bytes = state.wishes.size() * sizeof(Wish),
                  .spec = &state.spec};
  endpoints_->submit(now, rank, call, *this);
}

void World::absorb_split(Instant now, std::uint32_t rank, FurtherCommunicator& wanted) {
  const std::vector<Wish>& wishes = ranks_[rank].wishes;
  bool good = true;
  for (std::uint32_t other = 0; other < wishes.size(); ++other)
    good = good && wishes[other] == wanted.wish_of(other);
  checkers_->on_split(now, rank, good);
  wanted.begin(now, rank);
}

void World::submit_call(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const auto splits = splits_of(state.round);
  if (state.call < splits.size()) return submit_split(now, rank, *splits[state.call]);
  Call call{.kind = plan_->calls()[state.call - splits.size()],
            .round = state.round,
            .bytes = plan_->elements() * sizeof(float)};
  if (core_ != nullptr) {
    if (call.kind == CallKind::replica_broadcast)
      memory_[rank].ledger = replicas_[rank].begin_broadcast();
    if (call.kind == CallKind::messages) {
      messages_->prepare(rank, state.round, memory_[rank]);
      call.messages = memory_[rank].messages;
      if (messages_->exchanges()) call.spec = &memory_[rank].exchange;
    } else {
      if (scenario_.operation().owner_weights()) draw_owner_weights(rank);
      memory_[rank].lengths = uneven_->lengths(state.round);
      call.lengths = memory_[rank].lengths;
      state.spec = plan_->spec(call.kind, static_cast<Rank>(rank), memory_[rank], state.weight);
      call.spec = &state.spec;
    }
  }
  for (const auto& parted : parted_) {
    if (call.kind != CallKind::messages && parted->takes(rank, *call.spec))
      return parted->submit(now, rank, call, *this);
  }
  endpoints_->submit(now, rank, call, *this);
}

// Draws the rank's weight at each owner. Some owners get weight 0, as if they had already used the
// work. With error feedback no weight is 0. So runs do not cover a residual that waits for an owner
// of weight 0.
void World::draw_owner_weights(std::uint32_t rank) {
  const RankState& state = ranks_[rank];
  std::vector<double>& weights = memory_[rank].owner_weights;
  weights.resize(ranks_.size());
  const std::uint32_t least = scenario_.operation().error_feedback() ? 1 : 0;
  for (std::size_t owner = 0; owner < weights.size(); ++owner)
    weights[owner] = state.weight * static_cast<double>(least + (rank + owner + state.round) % 4);
}

void World::on_done(Instant now, std::uint32_t rank, const CallResult& result) {
  RankState& state = ranks_[rank];
  book_.on_call(rank, state.round, result);
  const auto splits = splits_of(state.round);
  const CallKind kind =
      state.call < splits.size() ? CallKind::split : plan_->calls()[state.call - splits.size()];
  checkers_->on_returned(now, rank, state.round, kind, result.status);
  if (result.status.code() == StatusCode::kInvalidArgument ||
      result.status.code() == StatusCode::kUnsupported) {
    refusal_ = result.status;
  }
  if (kind == CallKind::split) {
    if (result.status.ok()) absorb_split(now, rank, *splits[state.call]);
  } else if (has_contents()) {
    absorb(rank, kind, result);
  }
  // The round goes on after a failed call, because ranks must number their calls alike, and the
  // call may have succeeded on other ranks.
  if (++state.call < splits.size() + plan_->calls().size()) return submit_call(now, rank);
  book_.on_finish(now, rank, state.round);
  ++state.round;
  close_rounds(now);
  begin_round(now, rank);
}

// Applies the result of a call to the rank's model.
void World::absorb(std::uint32_t rank, CallKind kind, const CallResult& result) {
  if (kind == CallKind::replica_broadcast) {
    const Status status = replicas_[rank].finish_broadcast();
    if (!status.ok() && result.status.ok()) {
      book_.on_failed(rank, ranks_[rank].round);
      checkers_->on_returned(queue_.now(), rank, ranks_[rank].round, kind, status);
    }
    drift_->on_broadcast(rank, ranks_[rank].round, memory_[rank].parameters, replicas_[rank]);
    return;
  }
  if (kind == CallKind::messages || !result.status.ok()) return;
  const std::uint32_t round = ranks_[rank].round;
  RankMemory& memory = memory_[rank];
  RoundValues& values = book_.round(round).values;
  if (kind == CallKind::all_reduce) {
    values.add_result(rank, 0, memory.result);
    workload_->update(rank, round, 0, memory.result, memory.parameters);
  } else if (kind == CallKind::reduce_scatter) {
    const auto own = plan_->own_block(static_cast<Rank>(rank), memory.lengths);
    const auto mean = std::span(memory.result).first(own.count);
    values.add_result(rank, own.offset, mean);
    if (memory.parameters.empty()) workload_->update(rank, round, own.offset, mean, {});
  } else if (kind == CallKind::reduce && rank == scenario_.operation().root()) {
    values.add_result(rank, 0, memory.result);
    if (memory.parameters.empty()) workload_->update(rank, round, 0, memory.result, {});
  } else if (kind == CallKind::replica_reduce) {
    absorb_replica_reduce(rank);
  }
  if (!memory.previous.empty()) memory.previous = memory.result;
}

void World::absorb_replica_reduce(std::uint32_t rank) {
  const std::uint32_t round = ranks_[rank].round;
  const schedule::Shard own = replicas_[rank].own_shard();
  const auto mean = std::span(memory_[rank].result).subspan(own.offset, own.count);
  book_.round(round).values.add_result(rank, own.offset, mean);
  workload_->update(rank, round, own.offset, mean, replicas_[rank].owned());
}

void World::close_rounds(Instant now) {
  std::uint32_t number = 0;
  while (book_.complete(number)) close_round(now, number);
}

void World::close_round(Instant now, std::uint32_t number) {
  OpenRound& open = book_.round(number);
  if (has_contents()) {
    open.values.close();
    const RoundValues::Error error = open.values.error();
    open.record.error_mean_square = error.mean_square;
    open.record.value_mean_square = error.value_mean_square;
    open.values.for_each_result(
        [&](std::uint32_t rank, std::span<const double> reference, std::span<const float> result) {
          checkers_->on_reduced(number, rank, reference, result);
        });
    if (drift_) open.record.drift_pair = drift_->close(number);
    const double loss = workload_->loss(0);
    if (loss == loss) open.record.loss = loss;
  }
  book_.close(number);
  checkers_->on_round_end(now, number, *network_);
  if (scenario_.has_duration_ms() && static_cast<double>(now.ns) >= scenario_.duration_ms() * 1e6)
    stopping_ = true;
  if (options_.progress) options_.progress(number + 1, now.ns);
}

// ---- faults -------------------------------------------------------------------------------------

void World::on_fault(Instant now, std::uint32_t number, bool begins) {
  if (calm_) return;
  if (!begins) {
    std::erase(open_faults_, number);
    return end_fault(now, number);
  }
  const Fault& fault = faults_->fault(number);
  if (fault.kind == Fault::Kind::crash) return on_death(now, fault.rank);
  if (fault.kind == Fault::Kind::move || fault.kind == Fault::Kind::rebind)
    return core_->change_address(fault.rank, fault.kind == Fault::Kind::rebind);
  if (fault.kind == Fault::Kind::narrow) {
    for (const auto& [from, to] : fault.directions) network_->narrow(from, to, fault.bytes);
    return;
  }
  open_faults_.push_back(number);
  if (fault.kind == Fault::Kind::pause) return on_pause(now, fault.rank);
  for (const auto& [from, to] : fault.directions) network_->block(from, to);
}

void World::end_fault(Instant now, std::uint32_t number) {
  const Fault& fault = faults_->fault(number);
  if (fault.kind == Fault::Kind::pause) return on_resume(now, fault.rank);
  if (fault.kind == Fault::Kind::narrow) {
    for (const auto& [from, to] : fault.directions) network_->narrow(from, to, NarrowPairs::kAny);
    return;
  }
  for (const auto& [from, to] : fault.directions) network_->unblock(from, to);
}

// Ends all faults for good. Checkers expect rounds without faults from the latest round that any
// rank has reached, because ranks may be ahead of rank 0.
void World::become_calm(Instant now) {
  calm_ = true;
  network_->set_calm();
  if (core_ != nullptr) core_->set_calm();
  for (const std::uint32_t number : std::exchange(open_faults_, {})) end_fault(now, number);
  std::uint32_t first_round = 0;
  bool all_live = true;
  for (const RankState& rank : ranks_) {
    first_round = std::max(first_round, rank.round);
    all_live = all_live && !rank.dead;
  }
  if (all_live) checkers_->on_faults_over(first_round);
  if (all_live) each_group([&](CallGroup& group) { group.on_faults_over(first_round); });
  for (const auto& communicator : communicators_) communicator->on_faults_over();
}

void World::on_pause(Instant now, std::uint32_t rank) {
  if (ranks_[rank].dead || ++ranks_[rank].pauses > 1) return;
  endpoints_->pause(now, rank);
  checkers_->on_pause(now, rank);
  for (const auto& communicator : communicators_) communicator->on_pause(now, rank);
  each_group([&](CallGroup& group) { group.on_pause(now, rank); });
}

void World::on_resume(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.dead || --state.pauses > 0) return;
  checkers_->on_resume(now, rank);
  for (const auto& communicator : communicators_) communicator->on_resume(now, rank);
  each_group([&](CallGroup& group) { group.on_resume(now, rank); });
  endpoints_->resume(now, rank);
  if (std::exchange(state.submit_due, false)) on_computed(now, rank);
  if (std::exchange(state.leave_due, false)) leave(now, rank);
}

void World::on_death(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (std::exchange(state.dead, true)) return;
  stop_running(rank);
  endpoints_->kill(now, rank);
  checkers_->on_death(rank);
  for (const auto& communicator : communicators_) communicator->on_death(rank);
  each_group([&](CallGroup& group) { group.on_death(rank); });
  book_.on_death(rank);
  close_rounds(now);
}

// ---- the outcome --------------------------------------------------------------------------------

RunRecord World::make_record() {
  RunRecord record;
  record.seed = seed_;
  record.rounds = book_.records();
  record.network = network_->counters();
  record.simulated_ns = queue_.now().ns;
  record.events = events_;
  for (const auto sent : record.network.sent) record.packets += sent;
  record.links = link_records(*topology_, *network_, record.simulated_ns);
  record.call_ms = book_.call_ms();
  for (const RoundRecord& round : record.rounds) {
    if (round.failed_calls > 0) continue;
    record.round_ms.push_back(static_cast<double>(round.end_ns - round.first_submit_ns) / 1e6);
  }
  record.measures = call_measures(record, book_, plan_->elements() * sizeof(float));
  append(record.measures, compute_book_.measures(record.rounds, compute_->choice()));
  append(record.measures, cross_->measures(queue_.now()));
  if (workload_) append(record.measures, workload_->measures());
  if (drift_) append(record.measures, drift_->measures());
  if (!replicas_.empty()) append(record.measures, age_measures(replicas_));
  if (core_ != nullptr && core_->addresses() != nullptr)
    checkers_->on_addresses(queue_.now(), core_->addresses()->overdrawn());
  record.checks = checkers_->finish(queue_.now(), *network_, core_ == nullptr || core_->idle());
  append(record.measures, communicator_measures(communicators_));
  for (const auto& communicator : communicators_)
    communicator->finish(queue_.now(), *network_, record.checks);
  each_group([&](CallGroup& group) { group.finish(queue_.now(), *network_, record.checks); });
  record.trace_hash = network_->trace().value();
  return record;
}

Result<RunRecord> run(const scenario::Scenario& scenario, std::uint64_t seed,
                      const RunOptions& options) {
  auto world = World::make(scenario, seed, options);
  if (!world.ok()) return world.status();
  return (*world)->run();
}

}  // namespace leeway::sim
