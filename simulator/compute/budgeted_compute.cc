#include "compute/budgeted_compute.h"

#include <algorithm>

#include "compute/scaled_time.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

budget::StepGateOptions gate_options(const scenario::Compute::DropCompute& compute) {
  budget::StepGateOptions options{.micro_batches = compute.micro_batches(),
                                  .micro_batches_min = compute.micro_batches_min(),
                                  .warm_up_steps = compute.warm_up_rounds()};
  if (compute.has_threshold_ms()) {
    options.threshold = Duration(std::max<std::int64_t>(1, ns_of_ms(compute.threshold_ms())));
  }
  return options;
}

}  // namespace

BudgetedCompute::BudgetedCompute(const scenario::Compute::DropCompute& compute, std::uint32_t ranks)
    : noise_{ns_of_ms(compute.micro_batch_ms()), drop_compute_unit_f32(compute.factor())},
      warm_up_rounds_(compute.warm_up_rounds()),
      forward_f32_(to_f32(compute.forward_share())),
      fixed_maximum_(compute.normalisation() == scenario::Compute::DropCompute::fixed_maximum),
      gates_(ranks, budget::StepGate(gate_options(compute))),
      latencies_ns_(compute.micro_batches()) {
  if (!compute.has_threshold_auto()) return;
  automatic_.emplace(
      AutoThresholdOptions{.ranks = ranks,
                           .micro_batches = compute.micro_batches(),
                           .first_round = compute.warm_up_rounds(),
                           .window_rounds = compute.threshold_auto().window_rounds(),
                           .adopt_after = compute.threshold_auto().adopt_after_rounds(),
                           .every_rounds = compute.threshold_auto().every_rounds()});
}

ComputeDraw BudgetedCompute::draw(Instant now, std::uint32_t rank, std::uint32_t round,
                                  RandomStream& stream, std::uint64_t slow_f32) {
  budget::StepGate& gate = gates_[rank];
  if (automatic_) gate.set_threshold(automatic_->on_begin(now, rank, round));
  sim::draw(noise_, stream, slow_f32, latencies_ns_);
  const Instant end = compute_step(now, gate);
  if (automatic_) automatic_->on_computed(rank, round, gate);
  std::int64_t full_ns = 0;
  for (const std::int64_t latency_ns : latencies_ns_) full_ns = sum_of_times(full_ns, latency_ns);
  const MicroBatches done{gate.completed(), gate.options().micro_batches};
  const bool drops = round >= warm_up_rounds_ && gate.threshold() != budget::kNoThreshold;
  return {.ns = (end - now).count(),
          .full_ns = full_ns,
          .micro_batches = done,
          .weight = static_cast<double>(fixed_maximum_ ? done.planned : done.completed),
          .threshold_ns = drops ? gate.threshold().count() : 0};
}

// Computes one step, which begins at `now`. Asks the gate whether to stop: before the first
// micro-batch, after each micro-batch, and after each forward pass if that has a time of its own.
// Returns the time when the rank stops computing.
Instant BudgetedCompute::compute_step(Instant now, budget::StepGate& gate) const {
  bool more = gate.next(now);
  for (std::size_t i = 0; more && i < latencies_ns_.size(); ++i) {
    const Instant forward_end = now + Duration(scaled_time(latencies_ns_[i], forward_f32_));
    if (forward_f32_ != 0 && gate.should_stop(forward_end)) return forward_end;
    now += Duration(latencies_ns_[i]);
    more = gate.next(now);
  }
  return now;
}

}  // namespace leeway::sim
