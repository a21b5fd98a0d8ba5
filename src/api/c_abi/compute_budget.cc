// C functions for DropCompute budgets.
#include "leeway/c/compute_budget.h"

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

struct leeway_compute_budget {
  std::unique_ptr<leeway::ComputeBudget> value;
};

using namespace leeway;
using namespace leeway::c_abi;

namespace {

constexpr leeway_compute_budget_options kBudgetDefaults = LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT;
static_assert(LEEWAY_THRESHOLD_FIXED == static_cast<int>(ComputeThreshold::Kind::fixed));
static_assert(LEEWAY_COMPENSATION_REQUEUE == static_cast<int>(DropCompensation::requeue));
static_assert(LEEWAY_FIXED_MAXIMUM == static_cast<int>(Normalisation::fixed_maximum));

Result<ComputeBudgetOptions> budget_options_of(const leeway_compute_budget_options* given) {
  const auto read = read_sized("leeway_compute_budget_options", given, kBudgetDefaults);
  if (!read.ok()) return read.status();
  const auto kind = enum_of<ComputeThreshold::Kind>("threshold", read->threshold, 3);
  if (!kind.ok()) return kind.status();
  const auto normalisation = enum_of<Normalisation>("normalisation", read->normalisation, 2);
  if (!normalisation.ok()) return normalisation.status();
  const auto compensation = enum_of<DropCompensation>("compensation", read->compensation, 3);
  if (!compensation.ok()) return compensation.status();
  ComputeBudgetOptions options;
  options.micro_batches = read->micro_batches;
  options.threshold = *kind == ComputeThreshold::Kind::fixed
                          ? ComputeThreshold(duration_of(read->threshold_ns))
                          : ComputeThreshold(*kind);
  options.warm_up_steps = read->warm_up_steps;
  options.micro_batches_min = read->micro_batches_min;
  options.normalisation = *normalisation;
  options.compensation = *compensation;
  options.window_steps = read->window_steps;
  options.reestimate_steps = read->reestimate_steps;
  options.drift_tolerance = read->drift_tolerance;
  options.exchange_deadline = duration_of(read->exchange_deadline_ns);
  void* const user = read->user;
  if (read->clock_ns != nullptr)
    options.clock = [clock = read->clock_ns, user] { return Duration(clock(user)); };
  if (read->device_seconds != nullptr)
    options.device_seconds = [seconds = read->device_seconds, user] { return seconds(user); };
  return options;
}

leeway_compute_counts struct_of(const ComputeCounts& counts) {
  return {sizeof(leeway_compute_counts),
          counts.steps,
          counts.steps_stopped,
          counts.planned,
          counts.completed,
          counts.dropped,
          counts.aborted,
          counts.clock_clamps,
          counts.latency_clamps,
          counts.threshold_clamps};
}

leeway_compute_statistics struct_of(const ComputeStatistics& statistics) {
  leeway_compute_statistics out = LEEWAY_COMPUTE_STATISTICS_INIT;
  out.exchanges = statistics.exchanges;
  out.exchange_waits = statistics.exchange_waits;
  out.exchange_failures = statistics.exchange_failures;
  out.estimates = statistics.estimates;
  out.drifts = statistics.drifts;
  if (!statistics.estimate) return out;
  const ThresholdEstimate& estimate = *statistics.estimate;
  out.threshold_ns = estimate.threshold.count();
  out.drop_rate = estimate.drop_rate;
  out.time_cut = estimate.time_cut;
  out.effective_speedup = estimate.effective_speedup;
  out.predicted_threshold_s = estimate.predicted_threshold_s;
  out.predicted_drop_rate = estimate.predicted_drop_rate;
  out.predicted_effective_speedup = estimate.predicted_effective_speedup;
  out.micro_batch_mean_s = estimate.micro_batch_mean_s;
  out.micro_batch_deviation_s = estimate.micro_batch_deviation_s;
  out.overhead_s = estimate.overhead_s;
  return out;
}

// Returns what `get` returns, or `otherwise` if `budget` is NULL.
template <typename Value, typename Get>
Value get_or(const leeway_compute_budget* budget, Value otherwise, Get&& get) {
  return budget != nullptr ? static_cast<Value>(get(*budget->value)) : otherwise;
}

}  // namespace

leeway_status leeway_compute_budget_create(leeway_communicator* communicator,
                                           const leeway_compute_budget_options* options,
                                           leeway_compute_budget** budget) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(counted(communicator, clear(name, "budget", budget)));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    const auto read = budget_options_of(options);
    if (!read.ok()) return counted(communicator, read.status());
    auto made = ComputeBudget::create(*communicator->value, *read);
    if (!made.ok()) return made.status();
    *budget = new leeway_compute_budget{std::move(*made)};
    return Status();
  });
}

void leeway_compute_budget_free(leeway_compute_budget* budget) {
  delete budget;
}

int32_t leeway_compute_budget_next_micro_batch(leeway_compute_budget* budget) {
  return budget != nullptr && budget->value->next_micro_batch();
}

int32_t leeway_compute_budget_should_stop(leeway_compute_budget* budget) {
  return budget == nullptr || budget->value->should_stop();
}

double leeway_compute_budget_weight(const leeway_compute_budget* budget) {
  return get_or(budget, 0.0, [](const ComputeBudget& from) { return from.weight(); });
}

uint32_t leeway_compute_budget_completed(const leeway_compute_budget* budget) {
  return get_or(budget, std::uint32_t{0},
                [](const ComputeBudget& from) { return from.completed(); });
}

uint64_t leeway_compute_budget_micro_batch(const leeway_compute_budget* budget) {
  return get_or(budget, std::uint64_t{0},
                [](const ComputeBudget& from) { return from.micro_batch(); });
}

leeway_status leeway_compute_budget_dropped(const leeway_compute_budget* budget, uint64_t* first,
                                            uint64_t* count) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "budget", budget));
    const MicroBatchRange dropped = budget->value->dropped();
    if (first != nullptr) *first = dropped.first;
    if (count != nullptr) *count = dropped.count;
    return Status();
  });
}

uint64_t leeway_compute_budget_steps_due(const leeway_compute_budget* budget,
                                         uint64_t steps_planned) {
  return get_or(budget, std::uint64_t{0},
                [&](const ComputeBudget& from) { return from.steps_due(steps_planned); });
}

int64_t leeway_compute_budget_threshold_ns(const leeway_compute_budget* budget) {
  return get_or(budget, std::int64_t{0},
                [](const ComputeBudget& from) { return from.threshold().count(); });
}

leeway_status leeway_compute_budget_statistics(const leeway_compute_budget* budget,
                                               leeway_compute_counts* local,
                                               leeway_compute_counts* global,
                                               leeway_compute_statistics* all) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "budget", budget));
    const ComputeStatistics from = budget->value->statistics();
    if (local != nullptr)
      LEEWAY_C_TRY(write_sized("leeway_compute_counts", struct_of(from.local), local));
    if (global != nullptr)
      LEEWAY_C_TRY(write_sized("leeway_compute_counts", struct_of(from.global), global));
    if (all == nullptr) return Status();
    return write_sized("leeway_compute_statistics", struct_of(from), all);
  });
}

leeway_status leeway_compute_budget_explain(const leeway_compute_budget* budget) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "budget", budget));
    return budget->value->status();
  });
}

leeway_status leeway_compute_budget_synchronize(leeway_compute_budget* budget) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "budget", budget));
    return budget->value->synchronize();
  });
}
