#include "compute/compute_model.h"

#include "compute/scaled_time.h"
#include "compute/time_trace.h"
#include "engine/variates.h"

namespace leeway::sim {
namespace {

struct Drawing {
  RandomStream& stream;
  std::uint32_t round;
  std::uint64_t slow_f32;

  ComputeDraw of(std::int64_t ns) const { return {scaled_time(ns, slow_f32), 1}; }

  ComputeDraw operator()(const ConstantTime& model) const { return of(model.ns); }
  ComputeDraw operator()(const LognormalTime& model) const {
    return of(lognormal(stream, model.median_ns, model.sigma_f32));
  }
  ComputeDraw operator()(const HeavyTailTime& model) const {
    return of(pareto(stream, model.minimum_ns, model.inverse_alpha_f32));
  }
  ComputeDraw operator()(const PeriodicTime& model) const {
    const bool longer = round >= model.offset && (round - model.offset) % model.every == 0;
    return of(sum_of_times(model.base_ns, longer ? model.extra_ns : 0));
  }
  ComputeDraw operator()(const TraceTime& model) const {
    return of(model.ns[round % model.ns.size()]);
  }
  ComputeDraw operator()(const DropComputeNoise& model) const {
    const DropComputeDraw drawn = sim::draw(model, stream, slow_f32);
    return {drawn.ns, static_cast<double>(drawn.completed) / model.micro_batches};
  }
};

DropComputeNoise noise_of(const scenario::Compute::DropCompute& compute) {
  return {
      ns_of_ms(compute.micro_batch_ms()), compute.micro_batches(),
      drop_compute_unit_f32(compute.factor()),
      compute.has_threshold_ms() ? std::max<std::int64_t>(1, ns_of_ms(compute.threshold_ms())) : 0};
}

}  // namespace

Result<ComputeModel> compute_model(const scenario::Compute& compute) {
  using scenario::Compute;
  switch (compute.kind_case()) {
    case Compute::kConstantMs:
      return ComputeModel(ConstantTime{ns_of_ms(compute.constant_ms())});
    case Compute::kLognormal:
      return ComputeModel(LognormalTime{ns_of_ms(compute.lognormal().median_ms()),
                                        to_f32(compute.lognormal().sigma())});
    case Compute::kHeavyTail:
      return ComputeModel(HeavyTailTime{ns_of_ms(compute.heavy_tail().min_ms()),
                                        to_f32(1 / compute.heavy_tail().alpha())});
    case Compute::kPeriodic: {
      const Compute::Periodic& periodic = compute.periodic();
      return ComputeModel(PeriodicTime{ns_of_ms(periodic.base_ms()), ns_of_ms(periodic.extra_ms()),
                                       periodic.every(), periodic.offset()});
    }
    case Compute::kDropCompute:
      return ComputeModel(noise_of(compute.drop_compute()));
    case Compute::kTrace: {
      auto times = read_time_trace(compute.trace());
      if (!times.ok()) return times.status();
      return ComputeModel(TraceTime{std::move(*times)});
    }
    case Compute::KIND_NOT_SET:
      break;
  }
  return ComputeModel(ConstantTime{});
}

ComputeDraw draw(const ComputeModel& model, RandomStream& stream, std::uint32_t round,
                 std::uint64_t slow_f32) {
  return std::visit(Drawing{stream, round, slow_f32}, model);
}

}  // namespace leeway::sim
