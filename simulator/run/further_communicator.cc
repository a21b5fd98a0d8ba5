#include "run/further_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/philox.h"
#include "engine/random_stream.h"
#include "run/call_group.h"
#include "scenario/rank_set.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

// Stream tags of the keyed hash (base/philox.h), for epochs and for the values in a split.
constexpr std::uint32_t kEpochStream = 0x47000000;
constexpr std::uint32_t kValueStream = 0x48000000;

// A member aborts the communicator after this many failed calls since it joined, like a program
// that cannot go on.
constexpr std::uint32_t kFailuresMax = 2;

// If a process is paused when its next step is due, the step is tried again after this time.
constexpr Duration kPausedAgain = std::chrono::milliseconds(1);

// An event's argument consists of step, rank and life (which counts how often the communicator was
// made before).
constexpr int kRankShift = 8;
constexpr int kLifeShift = 32;

float value_of(std::uint64_t key, std::size_t element) {
  const auto bits = static_cast<std::uint32_t>((element + key) * 2654435761u) >> 16;
  return static_cast<float>(bits) / 65536.0f - 0.5f;
}

void fill(std::vector<float>& values, float with) {
  std::fill(values.begin(), values.end(), with);
}

// Visits all buffers that a call could read or write.
template <typename Use>
void for_each_buffer(RankMemory& memory, Use&& use) {
  for (std::vector<float>* buffer :
       {&memory.gradient, &memory.result, &memory.residual, &memory.previous})
    use(*buffer);
  for (std::vector<float>& buffer : memory.message_buffers) use(buffer);
}

std::uint32_t digest_of(RankMemory& memory) {
  std::uint32_t digest = 0;
  for_each_buffer(memory, [&](std::vector<float>& buffer) {
    digest = digest * 31 + crc32c(std::as_bytes(std::span(buffer)));
  });
  return digest;
}

}  // namespace

FurtherCommunicator::FurtherCommunicator(const scenario::Scenario& scenario, std::uint64_t seed,
                                         int number, Place place)
    : whole_(scenario),
      entry_(scenario.communicator(number)),
      seed_(seed),
      number_(number),
      place_(std::move(place)) {}

Result<std::unique_ptr<FurtherCommunicator>> FurtherCommunicator::make(
    const scenario::Scenario& scenario, std::uint64_t seed, int number, Place place) {
  auto made = std::unique_ptr<FurtherCommunicator>(
      new FurtherCommunicator(scenario, seed, number, std::move(place)));
  const auto processes = scenario::ranks_of(scenario, made->entry_.ranks());
  if (!processes.ok()) return processes.status();
  if (Status status = made->set_up(*processes); !status.ok()) return status;
  return made;
}

Status FurtherCommunicator::set_up(const std::vector<std::uint32_t>& processes) {
  processes_.assign(processes.begin(), processes.end());
  if (entry_.reversed()) std::reverse(processes_.begin(), processes_.end());
  scenario_.set_ranks(static_cast<std::uint32_t>(processes_.size()));
  *scenario_.mutable_operation() = entry_.operation();
  const scenario::Operation& first = whole_.operation();
  scenario_.mutable_operation()->set_datagram_bytes(first.datagram_bytes());
  scenario_.mutable_operation()->set_peer_timeout_ms(first.peer_timeout_ms());
  *scenario_.mutable_checkers() = whole_.checkers();
  scenario_.mutable_checkers()->MergeFrom(entry_.checkers());
  scenario_.mutable_checkers()->add_skip("i10");
  const std::size_t elements = scenario_.operation().bytes() / sizeof(float);
  auto plan = OperationPlan::make(scenario_, elements);
  if (!plan.ok()) return plan.status();
  plan_.emplace(std::move(*plan));
  const std::uint64_t drawn =
      keyed_hash(seed_, static_cast<std::uint32_t>(number_), kEpochStream, 0, 1);
  messages_.emplace(scenario_, drawn, plan_->message_options());
  uneven_.emplace(scenario_, drawn, elements);
  members_.resize(processes_.size());
  for (Rank rank = 0; rank < processes_.size(); ++rank)
    random_.emplace_back(seed_, std::uint64_t(number_) << 16 | rank, Purpose::member);
  for (std::uint32_t number = 0; number <= entry_.again(); ++number) {
    CheckerSetup setup{.processes = processes_, .epoch = epoch_of(number), .credit = place_.credit};
    setup.engines.resize(processes_.size());
    setup.network = &whole_;
    Life& life = lives_.emplace_back();
    life.checkers = std::make_unique<Checkers>(scenario_, seed_, std::move(setup));
    life.communicator = place_.core.add(epoch_of(number), processes_, life.checkers.get());
    place_.watchers.add(life.checkers->packets());
  }
  return {};
}

// Returns the communicator's epoch in a life, which ends when all members have left. In life 0 it
// is the epoch that the first rank proposed in the split, as in src/api/communicator/splitting.cc.
// Later lives have other epochs.
std::uint32_t FurtherCommunicator::epoch_of(std::uint32_t life) const {
  const std::uint32_t first = std::max(1u, static_cast<std::uint32_t>(wish_of(processes_[0])[2]));
  if (life == 0) return first;
  return epoch_from(keyed_hash(first, life, kEpochStream, 0, 2));
}

Rank FurtherCommunicator::rank_of(std::uint32_t process) const {
  return rank_in(processes_, process);
}

Wish FurtherCommunicator::wish_of(std::uint32_t process) const {
  const bool member = rank_of(process) != kNoRank;
  const auto key = static_cast<std::int32_t>(process);
  const std::uint64_t proposed =
      keyed_hash(seed_, process, kEpochStream, static_cast<std::uint32_t>(number_), 0);
  return {member ? 0 : -1, entry_.reversed() ? -key : key, static_cast<std::int32_t>(proposed)};
}

std::unique_ptr<RankMemory> FurtherCommunicator::new_memory() const {
  auto memory = std::make_unique<RankMemory>();
  const scenario::Operation& operation = scenario_.operation();
  memory->gradient.assign(plan_->elements(), 0.0f);
  memory->result.assign(plan_->elements(), 0.0f);
  if (operation.error_feedback()) memory->residual.assign(plan_->elements(), 0.0f);
  if (operation.has_control_variate() &&
      operation.control_variate() == scenario::Operation::previous) {
    memory->previous.assign(plan_->elements(), 0.0f);
  }
  return memory;
}

// ---- members ------------------------------------------------------------------------------------

void FurtherCommunicator::push(Instant at, Rank rank, Step step) {
  place_.queue.push(at, static_cast<std::uint32_t>(number_),
                    static_cast<std::uint32_t>(EventKind::member),
                    static_cast<std::uint64_t>(step) | std::uint64_t{rank} << kRankShift |
                        std::uint64_t{members_[rank].life} << kLifeShift);
}

Duration FurtherCommunicator::draw(Rank rank, double up_to_ms) {
  const auto up_to = static_cast<std::uint64_t>(ns_of_ms(up_to_ms));
  return Duration(static_cast<std::int64_t>(random_[rank].below(up_to + 1)));
}

void FurtherCommunicator::begin(Instant now, std::uint32_t process) {
  const Rank rank = rank_of(process);
  if (rank == kNoRank || members_[rank].dead) return;
  members_[rank].begun = true;
  push(now + draw(rank, entry_.open_ms()), rank, Step::open);
}

bool FurtherCommunicator::is_busy(std::uint32_t process) const {
  const Rank rank = rank_of(process);
  return rank != kNoRank && members_[rank].begun && !members_[rank].finished;
}

void FurtherCommunicator::on_event(const Event& event) {
  const Instant now{event.time_ns};
  const auto rank = static_cast<Rank>(event.argument >> kRankShift & 0xFFFF);
  const auto step = static_cast<Step>(event.argument & 0xFF);
  Member& member = members_[rank];
  if (member.finished || member.life != event.argument >> kLifeShift) return;
  if (member.paused) return push(now + kPausedAgain, rank, step);
  switch (step) {
    case Step::open:
      return open(now, rank);
    case Step::submit:
      return submit(now, rank);
    case Step::abort:
      return abort(now, rank);
    case Step::close:
      return close(now, rank);
  }
}

void FurtherCommunicator::open(Instant now, Rank rank) {
  Member& member = members_[rank];
  ++counts_.opened;
  member.open = true;
  member.round = 0;
  member.failures = 0;
  member.memory = new_memory();
  place_.core.open(now, lives_[member.life].communicator, rank);
  push(now + draw(rank, entry_.idle_ms()), rank, Step::submit);
}

void FurtherCommunicator::submit(Instant now, Rank rank) {
  Member& member = members_[rank];
  if (!member.open || member.leaving) return;
  arm_aborts(now, rank);
  RankMemory& memory = *member.memory;
  const std::uint32_t round = member.life * entry_.rounds() + member.round;
  const std::uint64_t key =
      keyed_hash(seed_, rank, kValueStream, static_cast<std::uint32_t>(number_), round);
  for (std::size_t i = 0; i < memory.gradient.size(); ++i) memory.gradient[i] = value_of(key, i);
  fill(memory.result, 0.0f);
  Call call{
      .kind = plan_->calls()[0], .round = member.round, .bytes = plan_->elements() * sizeof(float)};
  if (call.kind == CallKind::messages) {
    messages_->prepare(rank, round, memory);
    call.messages = memory.messages;
    if (messages_->exchanges()) call.spec = &memory.exchange;
  } else {
    memory.lengths = uneven_->lengths(round);
    call.lengths = memory.lengths;
    member.spec = plan_->spec(call.kind, rank, memory, 1.0 + static_cast<double>(rank % 3));
    call.spec = &member.spec;
  }
  member.calling = true;
  place_.core.submit(now, lives_[member.life].communicator, rank, call, *this);
}

void FurtherCommunicator::arm_aborts(Instant now, Rank rank) {
  const Member& member = members_[rank];
  for (const scenario::Abort& entry : entry_.abort()) {
    if (entry.rank() != processes_[rank] || entry.life() != member.life ||
        entry.from_round() != member.round)
      continue;
    push(now + Duration(ns_of_ms(entry.after_ms())), rank, Step::abort);
  }
}

void FurtherCommunicator::on_done(Instant now, std::uint32_t rank, const CallResult& result) {
  Member& member = members_[rank];
  member.calling = false;
  ++counts_.calls;
  counts_.failed += !result.status.ok();
  member.failures += !result.status.ok();
  // I20 says that no call returns an error. It is not checked for a scenario with aborts, because
  // an abort rightly makes calls of other members fail.
  if (entry_.abort_size() == 0) {
    lives_[member.life].checkers->on_returned(now, rank, member.round, plan_->calls()[0],
                                              result.status);
  }
  if (member.aborting) return;  // abort() goes on
  if (result.status.ok() && !member.memory->previous.empty())
    member.memory->previous = member.memory->result;
  ++member.round;
  const auto self = static_cast<Rank>(rank);
  const Step next = member.failures == kFailuresMax   ? Step::abort
                    : member.round == entry_.rounds() ? Step::close
                                                      : Step::submit;
  push(now + draw(self, entry_.idle_ms()), self, next);
}

// After an abort the buffers belong to the rank again. So this function fills them, and finish()
// checks that nothing else has written to them since.
void FurtherCommunicator::abort(Instant now, Rank rank) {
  Member& member = members_[rank];
  if (!member.open || member.leaving) return;
  Life& life = lives_[member.life];
  member.aborting = true;
  const bool failed = place_.core.abort(now, life.communicator, rank);
  member.aborting = false;
  life.checkers->on_abort(now, rank, failed && !member.calling);
  life.orderly = false;
  ++counts_.aborted;
  for_each_buffer(*member.memory, [](std::vector<float>& buffer) { fill(buffer, -7.25e9f); });
  const std::uint32_t digest = digest_of(*member.memory);
  aborted_.push_back({rank, member.life, std::move(member.memory), digest});
  end_life(now, rank);
}

void FurtherCommunicator::close(Instant now, Rank rank) {
  Member& member = members_[rank];
  if (!member.open || member.leaving) return;
  member.leaving = true;
  lives_[member.life].checkers->on_leave(now, rank, false);
  place_.core.close(now, lives_[member.life].communicator, rank, *this);
}

void FurtherCommunicator::on_left(Instant now, std::uint32_t rank) {
  lives_[members_[rank].life].checkers->on_left(now, rank);
  end_life(now, static_cast<Rank>(rank));
}

void FurtherCommunicator::end_life(Instant now, Rank rank) {
  Member& member = members_[rank];
  member.open = member.leaving = false;
  if (member.life == entry_.again()) return finish_member(now, rank);
  ++member.life;
  push(now + draw(rank, entry_.open_ms()), rank, Step::open);
}

void FurtherCommunicator::finish_member(Instant now, Rank rank) {
  members_[rank].finished = true;
  place_.on_finished(now, processes_[rank]);
}

// ---- faults -------------------------------------------------------------------------------------

void FurtherCommunicator::on_pause(Instant now, std::uint32_t process) {
  const Rank rank = rank_of(process);
  if (rank == kNoRank) return;
  members_[rank].paused = true;
  for (const Life& life : lives_) life.checkers->on_pause(now, rank);
}

void FurtherCommunicator::on_resume(Instant now, std::uint32_t process) {
  const Rank rank = rank_of(process);
  if (rank == kNoRank) return;
  members_[rank].paused = false;
  for (const Life& life : lives_) life.checkers->on_resume(now, rank);
}

void FurtherCommunicator::on_death(std::uint32_t process) {
  const Rank rank = rank_of(process);
  if (rank == kNoRank) return;
  members_[rank].dead = members_[rank].finished = true;
  for (Life& life : lives_) {
    life.checkers->on_death(rank);
    life.orderly = false;
  }
}

// Reports the end of faults to the checkers. They expect that nothing goes wrong from the first
// round on that no member has begun. Faults may have touched earlier rounds.
void FurtherCommunicator::on_faults_over() {
  for (std::uint32_t number = 0; number < lives_.size(); ++number) {
    std::uint32_t first = 0;
    for (const Member& member : members_) {
      if (member.life > number) first = entry_.rounds();
      if (member.life == number && member.open) first = std::max(first, member.round + 1);
    }
    if (lives_[number].orderly) lives_[number].checkers->on_faults_over(first);
  }
}

// ---- the outcome --------------------------------------------------------------------------------

void FurtherCommunicator::finish(Instant now, const Network& network,
                                 std::vector<CheckRecord>& into) {
  for (Aborted& aborted : aborted_) {
    lives_[aborted.life].checkers->on_aborted_buffers(aborted.rank,
                                                      digest_of(*aborted.memory) == aborted.digest);
  }
  for (std::uint32_t number = 0; number < lives_.size(); ++number) {
    std::string name = "communicator[" + std::to_string(number_) + "]";
    if (number > 0) name += " (made again: " + std::to_string(number) + ")";
    merge(into, lives_[number].checkers->finish(now, network, false), name);
  }
}

}  // namespace leeway::sim
