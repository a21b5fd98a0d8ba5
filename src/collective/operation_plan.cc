#include "collective/operation_plan.h"

#include <algorithm>

#include "collective/reduction.h"
#include "collective/spread.h"
#include "estimate/link_history.h"
#include "wire/codec_settings.h"

namespace leeway::collective {
namespace {

using protocol::FlowKind;

// Tensors up to this many bytes are copied where that lets the caller go on before receivers have
// confirmed. A copy of 64 KiB costs a few microseconds, a round trip tens.
constexpr std::size_t kCopyBytesMax = 64 * 1024;

// The same where receivers may fetch an empty flow. Waiting for their confirmation takes half a
// round trip without loss, and time-outs where reports are lost; a copy of 512 KiB takes 40 us.
constexpr std::size_t kFetchedBytesMax = 512 * 1024;

// Estimators that rescale each link by what arrived over it, and so need something of each.
bool needs_every_link(Estimator estimator) {
  return estimator == Estimator::horvitz_thompson || estimator == Estimator::augmented;
}

wire::OperationTag tag_of(const OperationSpec& spec) {
  wire::OperationTag tag;
  tag.operation = spec.kind;
  tag.dtype = dtype_of(spec);
  tag.reduce_op = spec.options.op;
  const CodecOptions spread_codec = spread_codec_of(spec);
  tag.codec = spec.options.codec.codec;
  tag.codec_settings = wire::pack_settings(spec.options.codec);
  tag.spread_codec = spread_codec.codec;
  tag.spread_settings = wire::pack_settings(spread_codec);
  tag.delivery = spec.options.delivery.kind;
  tag.spread = spec.options.spread;
  tag.estimator = spec.options.estimator;
  tag.root = point_to_point(spec.kind) ? kNoRank : spec.peer;
  tag.count = agreed_count(spec);
  return tag;
}

void plan_reduction(const OperationSpec& spec, const ReductionPlan& reduction, Instant submitted,
                    protocol::RoundPlan& plan) {
  const Delivery& delivery = spec.options.delivery;
  protocol::PhasePlan& phase = plan.phase(FlowKind::reduce);
  phase.active = true;
  phase.delivery = delivery.kind;
  phase.loss_max = delivery.loss_max;
  // A lossy reduction leaves the second half of the call's time to the spread.
  const bool halves =
      spec.kind == OperationKind::all_reduce && delivery.kind != Delivery::Kind::exact;
  phase.deadline = halves ? submitted + delivery.deadline / 2 : plan.deadline;
  phase.codec = spec.options.codec.codec;
  phase.fetch_empty = reduction.fetch_empty;
  phase.repairable = delivery.kind != Delivery::Kind::best_effort || reduction.fetch_empty;
  phase.payload_retained = reduction.copy_input;
}

void plan_spread(const OperationSpec& spec, const Spread& spread, protocol::RoundPlan& plan) {
  const Delivery& delivery = spec.options.delivery;
  const bool message = point_to_point(spec.kind);
  protocol::PhasePlan& phase = plan.phase(message ? FlowKind::point : FlowKind::spread);
  phase.active = true;
  phase.delivery = spec.kind == OperationKind::all_reduce ? spec.options.spread : delivery.kind;
  phase.loss_max = delivery.loss_max;
  phase.deadline = plan.deadline;
  phase.codec = spread_codec_of(spec).codec;
  phase.repairable = phase.delivery != Delivery::Kind::best_effort || spec.ledger != nullptr;
  phase.queue = spread.queue();
  phase.payload_retained = spread.retains_payload();
  phase.same_for_all = spread.same_for_all() && !message;
}

}  // namespace

DataType dtype_of(const OperationSpec& spec) {
  return spec.input.data != nullptr ? spec.input.dtype : spec.output.dtype;
}

CodecOptions spread_codec_of(const OperationSpec& spec) {
  return has_reduce_half(spec.kind) ? spec.options.spread_codec.value_or(spec.options.codec)
                                    : spec.options.codec;
}

codec::Purpose purpose_of(const OperationSpec& spec) {
  return has_reduce_half(spec.kind) ? codec::Purpose::sum : codec::Purpose::copy;
}

bool same_block(OperationKind kind) {
  return kind != OperationKind::scatter && kind != OperationKind::all_to_all;
}

bool is_small(const OperationSpec& spec) {
  // A residual is written while packets leave: the caller must wait for them.
  return spec.options.residual.empty() &&
         std::max(spec.input.bytes(), spec.output.bytes()) <= kCopyBytesMax;
}

bool fetches_empty(const OperationSpec& spec, const ReductionPlan& reduction) {
  if (!reduction.one_pass || !needs_every_link(reduction.estimator)) return false;
  if (spec.kind == OperationKind::all_reduce) return true;
  std::uint32_t longest = 0;
  for (Rank owner = 0; owner < reduction.size; ++owner)
    longest = std::max(longest, reduction.grid_of(owner).packets());
  return longest < estimate::kShortFlowPackets;
}

bool copies_input(const OperationSpec& spec, bool fetches_empty) {
  if (spec.kind == OperationKind::all_reduce || !spec.options.residual.empty()) return false;
  return is_small(spec) || (fetches_empty && spec.input.bytes() <= kFetchedBytesMax);
}

protocol::RoundPlan plan_round(const OperationSpec& spec, const ReductionPlan* reduction,
                               const Spread& spread, Instant submitted) {
  const Delivery& delivery = spec.options.delivery;
  protocol::RoundPlan plan;
  plan.tag = tag_of(spec);
  plan.name = to_string(spec.kind);
  plan.deadline_length = delivery.deadline;
  plan.deadline = submitted + delivery.deadline;
  plan.weight = static_cast<float>(spec.options.weight);
  plan.owner_weights = spec.options.owner_weights;
  plan.confirm_use = spec.options.confirm_use && has_reduce_half(spec.kind) &&
                     delivery.kind != Delivery::Kind::exact;
  if (reduction != nullptr) plan_reduction(spec, *reduction, submitted, plan);
  if (has_spread_half(spec.kind) || point_to_point(spec.kind)) plan_spread(spec, spread, plan);
  if (point_to_point(spec.kind)) {
    plan.point_peer = spec.peer;
    plan.point_send = spec.kind == OperationKind::send;
  }
  return plan;
}

}  // namespace leeway::collective
