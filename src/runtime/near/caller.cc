#include "near/caller.h"

#include <array>
#include <cstdio>
#include <utility>

namespace leeway::near {
namespace {

using collective::OperationKind;

using Text = std::array<char, 96>;

// Returns a text such as "all_reduce float[1000] sum" for the words of a descriptor. A peer may
// have written any value there.
Text describe(std::uint64_t what, std::uint64_t count) {
  Text text{};
  if (what == kAllocation) {
    std::snprintf(text.data(), text.size(), "allocate of %llu bytes",
                  static_cast<unsigned long long>(count));
    return text;
  }
  const auto kind = what >> 48;
  const auto op = what >> 40 & 0xFF;
  const auto dtype = what >> 32 & 0xFF;
  const auto root = what & 0xFFFF;
  const bool known = kind < static_cast<std::uint64_t>(wire::kOperationKinds) &&
                     op < static_cast<std::uint64_t>(kReduceOpCount) &&
                     dtype < static_cast<std::uint64_t>(kDataTypeCount);
  const int written =
      std::snprintf(text.data(), text.size(), "%s %s[%llu] %s",
                    known ? to_string(static_cast<OperationKind>(kind)) : "another call",
                    known ? to_string(static_cast<DataType>(dtype)).data() : "",
                    static_cast<unsigned long long>(count),
                    known ? to_string(static_cast<ReduceOp>(op)).data() : "");
  if (root != kNoRank && written > 0 && static_cast<std::size_t>(written) < text.size()) {
    std::snprintf(text.data() + written, text.size() - static_cast<std::size_t>(written),
                  " root %llu", static_cast<unsigned long long>(root));
  }
  return text;
}

}  // namespace

Caller::Caller(Station& station, std::string folder, std::string name)
    : station_(station),
      arena_(station.arena()),
      folder_(std::move(folder)),
      name_(std::move(name)),
      regions_(std::make_shared<Regions>(station)),
      peers_(static_cast<std::size_t>(arena_.ranks())),
      operands_(peers_.size()),
      scales_(peers_.size()) {}

// Begins a call. If this rank left the previous call early, other ranks may still be in that call
// and read this rank's slots. So begin() then waits until all ranks have left that call.
Status Caller::begin(const char* name, std::uint64_t number, Instant submitted, Duration deadline) {
  LEEWAY_ASSERT(number > terms_.call);
  terms_.name = name;
  terms_.call = number;
  terms_.length = deadline;
  terms_.deadline = deadline > no_deadline / 4 ? Instant::infinite_future() : submitted + deadline;
  counters_.calls.fetch_add(1, std::memory_order_relaxed);
  if (in_step_) return Status();
  station_.begin(terms_.call);
  const Status status = await(0);
  in_step_ = status.ok();
  return status;
}

// Returns this rank's descriptor for the current call. A rank has two descriptors and uses them in
// turn, because peers may still read the one of the call before.
Descriptor& Caller::next_descriptor() {
  turn_ = 1 - turn_;
  own_descriptor().call.store(terms_.call, std::memory_order_relaxed);
  return own_descriptor();
}

Status Caller::fail(const Status& status) {
  in_step_ = false;
  counters_.failed.fetch_add(1, std::memory_order_relaxed);
  station_.give_up(terms_.call, status.code());
  return status;
}

Status Caller::await(std::uint64_t step) {
  if (station_.aborted()) return station_.ended();
  return station_.await_all(terms_, step);
}

Caller::Outcome Caller::run(const Spec& spec, std::uint64_t number, Instant submitted,
                            CollectiveReport& report) {
  Outcome outcome;
  outcome.status = begin(to_string(spec.kind), number, submitted, spec.options.delivery.deadline);
  if (outcome.status.ok()) {
    outcome.status = go(spec, outcome.way);
  } else if (station_.anyone_elsewhere(terms_)) {
    outcome = {.status = Status(), .way = Way::elsewhere};
  }
  if (!outcome.status.ok()) {
    outcome.status = fail(outcome.status);
  } else if (outcome.way == Way::apart) {
    counters_.apart.fetch_add(1, std::memory_order_relaxed);
  } else if (outcome.way == Way::elsewhere) {
    in_step_ = false;  // not all ranks came to this call
    counters_.elsewhere.fetch_add(1, std::memory_order_relaxed);
  } else {
    fill_report(spec, submitted, report);
  }
  return outcome;
}

Caller::Outcome Caller::refuse(const Spec& spec, std::uint64_t number, const Status& why,
                               Rank about) {
  station_.blame(about);
  terms_.call = number;
  counters_.calls.fetch_add(1, std::memory_order_relaxed);
  return {.status =
              fail(Status::error(why.code(), "%s (%s #%llu)", why.c_str(), to_string(spec.kind),
                                 static_cast<unsigned long long>(terms_.call - 1)))};
}

Status Caller::go(const Spec& spec, Way& way) {
  regions_->drop_freed();
  plan_ = plan_of(spec, arena_.ranks(), arena_.slot_bytes());
  const bool premultiplied = spec.options.op == ReduceOp::premul_sum;
  multiplies_ = premultiplied && spec.options.factor != Scalar(1);
  direct_ = false;
  const bool prepared = describe(spec);
  Status met = meet();
  if (station_.anyone_elsewhere(terms_)) {
    way = Way::elsewhere;
    return Status();
  }
  if (!met.ok()) return met;
  if (anyone_apart()) {
    way = Way::apart;
    return Status();
  }
  std::uint64_t step = 1;
  if (Status status = agree_on_direct(spec, prepared, step); !status.ok()) return status;
  return move(spec, step);
}

// Writes this rank's descriptor. Then copies the first chunk into this rank's slot and returns
// true. Copies nothing and returns false if the call must go by datagrams, or if this rank's
// tensors lie in shared memory, so that the call may be direct.
bool Caller::describe(const Spec& spec) {
  Descriptor& own = next_descriptor();
  const bool apart = stands_apart(spec) || plan_.chunks > kStepsMax / 2;
  Regions::Spot from;
  Regions::Spot to;
  if (plan_.direct && !multiplies_ && !apart) {
    from = regions_->find({static_cast<const std::byte*>(spec.input.data), spec.input.bytes()});
    to = regions_->find({static_cast<const std::byte*>(spec.output.data), spec.output.bytes()});
  }
  const bool direct = from.number != 0 && to.number != 0;
  peers_[arena_.self()].first_slot = next_slot_;
  own.what.store(plan_.what(), std::memory_order_relaxed);
  own.count.store(plan_.count, std::memory_order_relaxed);
  own.condition.store(static_cast<std::uint64_t>(apart ? Condition::apart : Condition::ordinary),
                      std::memory_order_relaxed);
  own.first.store(next_slot_, std::memory_order_relaxed);
  own.from.store(direct ? from.number : 0, std::memory_order_relaxed);
  own.from_at.store(from.at, std::memory_order_relaxed);
  own.to.store(direct ? to.number : 0, std::memory_order_relaxed);
  own.to_at.store(to.at, std::memory_order_relaxed);
  if (direct || apart) return false;
  copy_in(spec, 0);
  return true;
}

// Waits until all ranks are in this call, and checks that they mean the same operation.
Status Caller::meet() {
  post(1);
  if (station_.aborted()) return await(1);
  const Station::Inspect inspect = [this](Rank peer) { return compare(peer); };
  Status status = station_.await_all(terms_, 1, inspect);
  for (Rank peer = 0; peer < arena_.ranks() && status.ok(); ++peer) {
    if (peer == arena_.self()) continue;
    status = compare(peer);
    peers_[peer].first_slot = descriptor_of(peer).first.load(std::memory_order_relaxed);
  }
  // This check comes after compare(). A peer that found a disagreement has given up, too, and the
  // error of compare() says more than "gave up".
  for (Rank peer = 0; peer < arena_.ranks() && status.ok(); ++peer) {
    if (peer != arena_.self()) status = station_.check_took_part(terms_, peer);
  }
  met_at_ = station_.now();
  return status;
}

Status Caller::compare(Rank peer) const {
  const std::uint64_t our_what = own_descriptor().what.load(std::memory_order_relaxed);
  const std::uint64_t our_count = own_descriptor().count.load(std::memory_order_relaxed);
  const std::uint64_t what = descriptor_of(peer).what.load(std::memory_order_relaxed);
  const std::uint64_t count = descriptor_of(peer).count.load(std::memory_order_relaxed);
  if (what == our_what && count == our_count) return Status();
  return Status::error(StatusCode::kMismatch,
                       "%s #%llu: ranks disagree: rank %u has %s; rank %u has %s", terms_.name,
                       static_cast<unsigned long long>(terms_.call - 1), unsigned{arena_.self()},
                       near::describe(our_what, our_count).data(), unsigned{peer},
                       near::describe(what, count).data());
}

bool Caller::anyone_apart() const {
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    const auto ordinary = static_cast<std::uint64_t>(Condition::ordinary);
    if (descriptor_of(rank).condition.load(std::memory_order_relaxed) != ordinary) return true;
  }
  return false;
}

// Decides whether the call is direct. Each rank sees all descriptors, so all decide alike. If only
// some ranks' tensors lie in shared memory, the call uses slots. It then takes one more step, in
// which these ranks fill their first slot.
Status Caller::agree_on_direct(const Spec& spec, bool prepared, std::uint64_t& step) {
  if (!plan_.direct) return Status();
  bool all = true;
  bool any = false;
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    const bool can = descriptor_of(rank).from.load(std::memory_order_relaxed) != 0 &&
                     descriptor_of(rank).to.load(std::memory_order_relaxed) != 0;
    all &= can;
    any |= can;
  }
  if (all) return find_tensors(spec);
  if (!any) return Status();
  if (!prepared) copy_in(spec, 0);
  post(++step);
  return await(step);
}

Status Caller::find_tensors(const Spec& spec) {
  direct_ = true;
  plan_ = plan_.unslotted();
  counters_.direct.fetch_add(1, std::memory_order_relaxed);
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    Peer& peer = peers_[rank];
    if (rank == arena_.self()) {
      peer.input = static_cast<const std::byte*>(spec.input.data);
      peer.result = static_cast<const std::byte*>(spec.output.data);
      continue;
    }
    const Descriptor& theirs = descriptor_of(rank);
    peer.input =
        regions_->peer(rank, {theirs.from.load(), theirs.from_at.load()}, spec.input.bytes());
    peer.result =
        regions_->peer(rank, {theirs.to.load(), theirs.to_at.load()}, spec.output.bytes());
    if (peer.input != nullptr && peer.result != nullptr) continue;
    return Status::error(
        StatusCode::kMismatch,
        "rank %u: %s #%llu: rank %u names memory that this rank does not have of it",
        unsigned{arena_.self()}, terms_.name, static_cast<unsigned long long>(terms_.call - 1),
        unsigned{rank});
  }
  return Status();
}

// Moves all chunks. Call it when all ranks have posted `step`, so that the first chunk can be read.
// If each rank sums its own part of a chunk, ranks fetch the others' sums in the next step, in
// which they sum the next chunk.
Status Caller::move(const Spec& spec, std::uint64_t step) {
  const std::uint64_t phases = plan_.chunks + (plan_.owners ? 1 : 0);
  for (std::uint64_t phase = 0;; ++phase) {
    if (plan_.owners) {
      if (phase > 0) gather_owned(spec, phase - 1);
      if (phase < plan_.chunks) sum_owned(spec, phase);
    } else {
      take(spec, phase);
    }
    if (phase + 1 >= plan_.chunks) summed_at_ = station_.now();
    // If a rank has failed, its caller may have changed the tensors while we read them.
    if (direct_) {
      if (Status status = station_.check_none_gave_up(terms_); !status.ok()) return status;
    } else if (phase + 1 < plan_.chunks) {
      copy_in(spec, phase + 1);
    }
    if (phase + 1 == phases) break;
    post(++step);
    if (Status status = await(step); !status.ok()) return status;
  }
  if (!direct_) {
    next_slot_ += plan_.chunks;
    return Status();
  }
  // Other ranks may still read this rank's tensors, so this rank waits until they are done.
  post(++step);
  return await(step);
}

// Each chunk is reported as one packet that arrived, because memory loses nothing.
void Caller::fill_report(const Spec& spec, Instant submitted, CollectiveReport& report) const {
  const Instant now = station_.now();
  report.sequence = terms_.call - 1;
  report.estimator = spec.options.estimator;
  report.codec = spec.options.codec;
  report.times = {.gate = met_at_ - submitted,
                  .reduce = summed_at_ - submitted,
                  .spread = now - summed_at_,
                  .total = now - submitted};
  const std::uint64_t chunks = plan_.chunks;
  report.peers.reserve(peers_.size() - 1);
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    if (rank == arena_.self()) continue;
    report.peers.push_back({.rank = rank, .expected = chunks, .arrived = chunks, .sent = chunks});
  }
  if (!collective::has_reduce_half(spec.kind)) return;
  const bool owns = plan_.kind != OperationKind::reduce || is_root();
  report.contributors.min = static_cast<std::uint32_t>(arena_.ranks());
  report.contributors.mean = arena_.ranks();
  report.contributors.histogram.assign(peers_.size() + 1, 0);
  report.contributors.histogram.back() = owns ? chunks : 0;
  report.owners = plan_.kind == OperationKind::reduce ? 1 : report.contributors.min;
}

}  // namespace leeway::near
