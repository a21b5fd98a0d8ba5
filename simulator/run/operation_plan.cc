#include "run/operation_plan.h"

#include <numeric>

#include "endpoint/ring_plan.h"
#include "leeway/codec.h"
#include "scenario/rank_set.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

leeway::Delivery::Kind kind_of(scenario::Delivery::Kind kind) {
  switch (kind) {
    case scenario::Delivery::exact:
      return leeway::Delivery::Kind::exact;
    case scenario::Delivery::bounded:
      return leeway::Delivery::Kind::bounded;
    case scenario::Delivery::best_effort:
      return leeway::Delivery::Kind::best_effort;
  }
  return leeway::Delivery::Kind::exact;
}

leeway::Delivery delivery_of(const scenario::Delivery& delivery, bool reduces) {
  // Only a sum can be estimated from a part of the data. So a lossy class applies to calls that
  // reduce, and to others only if the scenario sets their class.
  const bool exact = !reduces && !delivery.has_kind();
  const auto kind = exact ? leeway::Delivery::Kind::exact : kind_of(delivery.kind());
  const double loss_max = kind == leeway::Delivery::Kind::best_effort ? 1.0 : delivery.loss_max();
  return {kind, loss_max, Duration(ns_of_ms(delivery.deadline_ms()))};
}

std::vector<CallKind> calls_of(scenario::Operation::Kind kind) {
  switch (kind) {
    case scenario::Operation::all_reduce:
      return {CallKind::all_reduce};
    case scenario::Operation::reduce_scatter:
      return {CallKind::reduce_scatter};
    case scenario::Operation::all_gather:
      return {CallKind::all_gather};
    case scenario::Operation::broadcast:
      return {CallKind::broadcast};
    case scenario::Operation::all_to_all:
      return {CallKind::all_to_all};
    case scenario::Operation::replica_step:
      return {CallKind::replica_reduce, CallKind::replica_broadcast};
    case scenario::Operation::gather:
      return {CallKind::gather};
    case scenario::Operation::scatter:
      return {CallKind::scatter};
    case scenario::Operation::reduce:
      return {CallKind::reduce};
    case scenario::Operation::barrier:
      return {CallKind::barrier};
    case scenario::Operation::messages:
      return {CallKind::messages};
  }
  return {};
}

bool reduces(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
         kind == CallKind::replica_reduce || kind == CallKind::reduce;
}

}  // namespace

Result<OperationPlan> OperationPlan::make(const scenario::Scenario& scenario,
                                          std::size_t elements) {
  const auto& operation = scenario.operation();
  OperationPlan plan;
  plan.calls_ = calls_of(operation.kind());
  plan.elements_ = elements;
  plan.ranks_ = scenario.ranks();
  plan.contents_ = scenario.contents();
  plan.previous_as_control_ = operation.control_variate() == scenario::Operation::previous;
  CollectiveOptions& options = plan.options_;
  options.delivery = delivery_of(operation.delivery(), reduces(plan.calls_[0]));
  options.spread = plan.calls_[0] == CallKind::all_reduce ? kind_of(operation.spread())
                                                          : leeway::Delivery::Kind::exact;
  if (reduces(plan.calls_[0])) options.op = ReduceOp::avg;
  const auto codec = parse_codec(operation.codec());
  if (!codec.ok()) return codec.status();
  options.codec = *codec;
  if (operation.has_spread_codec()) {
    const auto spread_codec = parse_codec(operation.spread_codec());
    if (!spread_codec.ok()) return spread_codec.status();
    options.spread_codec = *spread_codec;
  }
  const auto estimator =
      parse_estimator(scenario::Operation::Estimator_Name(operation.estimator()));
  if (!estimator.ok()) return estimator.status();
  options.estimator = *estimator;
  options.confirm_use = operation.confirm_use();
  plan.root_ = static_cast<Rank>(operation.root());
  if (operation.kind() == scenario::Operation::messages) {
    plan.message_options_ = options;
  } else if (operation.messages_first() > 0) {
    plan.calls_.insert(plan.calls_.begin(), CallKind::messages);
    plan.message_options_.delivery = leeway::exact(options.delivery.deadline);
  }

  const auto parameter_codec = parse_codec(operation.replica().codec());
  if (!parameter_codec.ok()) return parameter_codec.status();
  const auto replica_kind = kind_of(operation.replica().delivery());
  plan.parameter_options_.delivery = {replica_kind, 1.0,
                                      Duration(ns_of_ms(operation.replica().deadline_ms()))};
  plan.parameter_options_.spread = replica_kind;
  plan.parameter_options_.codec = *parameter_codec;
  return plan;
}

namespace {

// Returns the lengths of the blocks that a rank sends (`sent`) or receives. `lengths` has all
// blocks, by sender and then by receiver.
std::vector<std::size_t> blocks_of(Rank rank, std::size_t ranks,
                                   std::span<const std::size_t> lengths, bool sent) {
  std::vector<std::size_t> blocks;
  for (std::size_t peer = 0; peer < ranks; ++peer)
    blocks.push_back(lengths[sent ? rank * ranks + peer : peer * ranks + rank]);
  return blocks;
}

std::size_t sum(const std::vector<std::size_t>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0});
}

}  // namespace

OperationPlan::OwnBlock OperationPlan::own_block(Rank rank,
                                                 std::span<const std::size_t> lengths) const {
  const std::size_t block = elements_ / ranks_;
  if (lengths.empty()) return {rank * block, block};
  OwnBlock own{.count = lengths[rank * ranks_ + rank]};
  for (Rank before = 0; before < rank; ++before) own.offset += lengths[before * ranks_ + before];
  return own;
}

OperationSpec OperationPlan::spec(CallKind kind, Rank rank, RankMemory& memory,
                                  double weight) const {
  OperationSpec spec;
  spec.contents = contents_;
  spec.options = kind == CallKind::replica_broadcast ? parameter_options_ : options_;
  const std::size_t block = elements_ / ranks_;
  // Numbers of elements that the rank sends to all ranks together, and receives from them.
  std::size_t sent = block * ranks_;
  std::size_t received = sent;
  if (!memory.lengths.empty()) {
    const auto sends = blocks_of(rank, ranks_, memory.lengths, true);
    const auto receives = blocks_of(rank, ranks_, memory.lengths, false);
    sent = sum(sends);
    received = sum(receives);
    if (kind != CallKind::all_gather) spec.input_blocks = collective::BlockList(Blocks(sends));
    if (kind != CallKind::reduce_scatter)
      spec.output_blocks = collective::BlockList(Blocks(receives));
  }
  const std::size_t own = own_block(rank, memory.lengths).count;
  if (reduces(kind)) {
    const std::size_t count = kind == CallKind::reduce_scatter ? sent : elements_;
    spec.options.weight = weight;
    spec.options.owner_weights = memory.owner_weights;
    if (!memory.residual.empty()) spec.options.residual = std::span(memory.residual).first(count);
    if (previous_as_control_)
      spec.options.control_variate = std::span(memory.previous).first(count);
  }
  const auto set_up = [&](OperationKind operation, std::size_t input_count,
                          std::size_t output_count) {
    spec.kind = operation;
    spec.input = ConstTensorView(memory.gradient.data(), input_count, DataType::f32);
    spec.output = TensorView(memory.result.data(), output_count, DataType::f32);
  };
  switch (kind) {
    case CallKind::all_reduce:
      set_up(OperationKind::all_reduce, elements_, elements_);
      break;
    case CallKind::reduce_scatter:
      set_up(OperationKind::reduce_scatter, sent, own);
      break;
    case CallKind::all_gather:
      set_up(OperationKind::all_gather, own, received);
      break;
    case CallKind::broadcast:
      set_up(OperationKind::broadcast, elements_, elements_);
      spec.peer = root_;
      break;
    case CallKind::all_to_all:
      set_up(OperationKind::all_to_all, sent, received);
      break;
    case CallKind::gather:
      set_up(OperationKind::gather, block, block * ranks_);
      spec.peer = root_;
      break;
    case CallKind::scatter:
      set_up(OperationKind::scatter, block * ranks_, block);
      spec.peer = root_;
      break;
    case CallKind::reduce:
      set_up(OperationKind::reduce, elements_, elements_);
      spec.peer = root_;
      break;
    case CallKind::barrier:
      spec.kind = OperationKind::barrier;
      spec.options.codec = {};
      spec.options.spread_codec.reset();
      break;
    case CallKind::messages:
    case CallKind::split:
      break;
    case CallKind::replica_reduce:
      set_up(OperationKind::replica_reduce, elements_, elements_);
      break;
    case CallKind::replica_broadcast:
      spec.kind = OperationKind::replica_broadcast;
      spec.input = memory.parameters;
      spec.output = memory.parameters;
      spec.ledger = memory.ledger;
      break;
  }
  return spec;
}

namespace {

// Makes buffers with one element for each block, to check calls before a run. Small buffers do,
// because of the library's checks only the limit on the length of flows depends on sizes. This
// check of calls before a run does not cover that limit.
RankMemory small_memory(const scenario::Scenario& scenario) {
  const scenario::Operation& operation = scenario.operation();
  RankMemory memory;
  memory.gradient.resize(scenario.ranks());
  memory.result.resize(scenario.ranks());
  if (operation.error_feedback()) memory.residual.resize(scenario.ranks());
  if (operation.control_variate() == scenario::Operation::previous)
    memory.previous.resize(scenario.ranks());
  memory.parameters = memory.result;
  return memory;
}

Status check_own_calls(const scenario::Scenario& scenario) {
  const auto plan = OperationPlan::make(scenario, scenario.ranks());
  if (!plan.ok()) return plan.status();
  const bool ring = scenario.endpoint() == scenario::Scenario::tcp_ring;
  RankMemory memory = small_memory(scenario);
  for (const CallKind kind : plan->calls()) {
    if (ring && !RingPlan::make(kind, scenario.operation().bytes(), 0, scenario.ranks())) {
      return Status::error(StatusCode::kUnsupported, "endpoint tcp_ring does no %s",
                           to_string(kind));
    }
    if (ring || (kind == CallKind::messages && scenario.ranks() < 2)) continue;
    OperationSpec spec;
    if (kind == CallKind::messages) {
      spec.kind = OperationKind::send;
      spec.peer = 1;
      spec.input = std::span<const float>(memory.gradient);
      spec.options = plan->message_options();
    } else {
      spec = plan->spec(kind, 0, memory, 1.0);
    }
    const Status taken = collective::validate(spec, 0, static_cast<int>(scenario.ranks()));
    if (!taken.ok()) return taken;
  }
  return {};
}

}  // namespace

Status check_calls(const scenario::Scenario& scenario) {
  Status taken = check_own_calls(scenario);
  for (int number = 0; taken.ok() && number < scenario.communicator_size(); ++number) {
    const auto members = scenario::ranks_of(scenario, scenario.communicator(number).ranks());
    if (!members.ok()) return members.status();
    scenario::Scenario further;
    further.set_ranks(static_cast<std::uint32_t>(members->size()));
    *further.mutable_operation() = scenario.communicator(number).operation();
    const Status status = check_own_calls(further);
    if (!status.ok())
      taken = Status::error(status.code(), "communicator[%d]: %s", number, status.c_str());
  }
  return taken;
}

}  // namespace leeway::sim
