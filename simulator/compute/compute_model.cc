#include "compute/compute_model.h"

#include "compute/scaled_time.h"
#include "engine/variates.h"
#include "scenario/record_file.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

constexpr scenario::TimeRules kTraceRules{.ms_max = 1e9, .comments = true};

struct Drawing {
  RandomStream& stream;
  std::uint32_t round;

  std::int64_t operator()(const ConstantTime& model) const { return model.ns; }
  std::int64_t operator()(const LognormalTime& model) const {
    return lognormal(stream, model.median_ns, model.sigma_f32);
  }
  std::int64_t operator()(const HeavyTailTime& model) const {
    return pareto(stream, model.minimum_ns, model.inverse_alpha_f32);
  }
  std::int64_t operator()(const PeriodicTime& model) const {
    const bool longer = round >= model.offset && (round - model.offset) % model.every == 0;
    return sum_of_times(model.base_ns, longer ? model.extra_ns : 0);
  }
  std::int64_t operator()(const TraceTime& model) const {
    return model.ns[round % model.ns.size()];
  }
};

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
    case Compute::kTrace: {
      auto times = scenario::read_times_ns(compute.trace(), kTraceRules);
      if (!times.ok()) return times.status();
      return ComputeModel(TraceTime{std::move(*times)});
    }
    case Compute::kDropCompute:
    case Compute::KIND_NOT_SET:
      break;
  }
  return ComputeModel(ConstantTime{});
}

std::int64_t draw(const ComputeModel& model, RandomStream& stream, std::uint32_t round,
                  std::uint64_t slow_f32) {
  return scaled_time(std::visit(Drawing{stream, round}, model), slow_f32);
}

}  // namespace leeway::sim
