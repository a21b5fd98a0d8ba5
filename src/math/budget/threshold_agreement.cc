#include "budget/threshold_agreement.h"

#include <algorithm>
#include <cmath>

#include "base/contracts.h"
#include "budget/timing_model.h"

namespace leeway::budget {
namespace {

constexpr std::uint64_t ComputeCounts::*kCountFields[] = {
    &ComputeCounts::steps,        &ComputeCounts::steps_stopped,  &ComputeCounts::planned,
    &ComputeCounts::completed,    &ComputeCounts::dropped,        &ComputeCounts::aborted,
    &ComputeCounts::clock_clamps, &ComputeCounts::latency_clamps, &ComputeCounts::threshold_clamps};
static_assert(std::size(kCountFields) == ThresholdAgreement::kCounts);
static_assert(sizeof(ComputeCounts) == ThresholdAgreement::kCounts * sizeof(std::uint64_t));

constexpr double kNsPerSecond = 1e9;
constexpr double kModelCandidates = 200.0;

}  // namespace

ThresholdAgreement::CountRow ThresholdAgreement::row_of(const ComputeCounts& counts) {
  CountRow row;
  for (std::size_t i = 0; i < kCounts; ++i) row[i] = static_cast<double>(counts.*kCountFields[i]);
  return row;
}

ComputeCounts ThresholdAgreement::counts_of(std::span<const double, kCounts> row) {
  ComputeCounts counts;
  for (std::size_t i = 0; i < kCounts; ++i) {
    counts.*kCountFields[i] = static_cast<std::uint64_t>(row[i]);
  }
  return counts;
}

ThresholdAgreement::ThresholdAgreement(const AgreementOptions& options)
    : options_(options),
      window_(options.window_steps, options.micro_batches),
      search_({.steps = options.window_steps,
               .candidates = options.automatic ? ThresholdSearchOptions{}.candidates : 2,
               .micro_batches_min = options.micro_batches_min,
               .indifference = kIndifference}) {
  LEEWAY_ASSERT(options.window_steps >= kWindowStepsMin && options.ranks >= 1);
  measured_.reserve(std::size_t{options.window_steps} * options.micro_batches);
}

ThresholdAgreement::Stage ThresholdAgreement::due(std::uint64_t step) const {
  const std::uint64_t measured = step - options_.warm_up_steps;
  if (step < options_.warm_up_steps || measured < options_.window_steps) return Stage::none;
  switch (measured % options_.window_steps) {
    case 0:
      return options_.automatic ? Stage::bounds : Stage::none;
    case kExchangeSteps:
      return Stage::tables;
    case std::uint64_t{2} * kExchangeSteps:
      return Stage::conclusion;
    default:
      return Stage::none;
  }
}

void ThresholdAgreement::begin_step(std::uint64_t step, Instant start) {
  if (!options_.automatic || step < options_.warm_up_steps) return;
  if (window_.full()) end_window(start);
  if (window_.steps() == 0) window_start_ = start;
}

void ThresholdAgreement::end_step(const StepGate& gate) {
  if (!options_.automatic || gate.steps_begun() <= options_.warm_up_steps) return;
  window_.add_step(gate.latencies_ns(), gate.aborted_after());
  stop_share_1024_ = gate.stop_share_1024();
}

void ThresholdAgreement::end_window(Instant now) {
  const LatencyTable table = window_.table();
  measured_.assign(table.ns.begin(), table.ns.end());
  measured_mixed_ = window_mixed_;
  window_mixed_ = false;
  search_.reset();
  if (!measured_.empty()) search_.add_bounds(table, now - window_start_);
  window_.clear();
}

void ThresholdAgreement::make_tables(const ComputeCounts& counts, bool bounds_ok) {
  totals_.fill(0.0);
  std::ranges::copy(row_of(counts), totals_.begin());
  totals_[kFailed] = bounds_ok ? 0.0 : 1.0;
  totals_[kMixed] = measured_mixed_ ? 1.0 : 0.0;
  totals_[kBehind] = behind_ ? 1.0 : 0.0;
  for (const std::int64_t ns : measured_) {
    const double seconds = static_cast<double>(ns) / kNsPerSecond;
    totals_[kSum] += seconds;
    totals_[kSquares] += seconds * seconds;
  }
  totals_[kLatencies] = static_cast<double>(measured_.size());
  if (!bounds_ok || measured_.empty()) return;
  search_.add_tables({.ns = measured_,
                      .micro_batches = options_.micro_batches,
                      .stop_share_1024 = stop_share_1024_});
}

void ThresholdAgreement::conclude(std::uint64_t step, bool ok) {
  if (!ok) {
    behind_ = true;
    return;
  }
  global_ = counts_of(std::span(totals_).first<kCounts>());
  if (!options_.automatic) return;
  catching_up_ |= totals_[kBehind] > 0.0;
  const bool usable = totals_[kFailed] + totals_[kMixed] == 0.0;
  if (usable && estimate_due(step)) adopt(step);
}

// Returns a sum in totals_ divided by the number of latencies.
double ThresholdAgreement::mean_of(Total total) const {
  return totals_[total] / std::max(1.0, totals_[kLatencies]);
}

// Returns true if a new threshold must be put in force. Uses only values that are equal on all
// ranks. If no rank completed anything, the present threshold must go.
bool ThresholdAgreement::estimate_due(std::uint64_t step) {
  if (estimates_ == 0 || catching_up_ || totals_[kLatencies] == 0.0) return true;
  if (options_.reestimate_steps != 0 && step - estimated_at_ >= options_.reestimate_steps)
    return true;
  const bool drifted = options_.drift_tolerance > 0.0 &&
                       std::abs(mean_of(kSum) - mean_s_) > options_.drift_tolerance * mean_s_;
  if (drifted) ++drifts_;
  return drifted;
}

void ThresholdAgreement::adopt(std::uint64_t step) {
  choice_ = search_.choose();
  overhead_ = search_.overhead();
  mean_s_ = mean_of(kSum);
  deviation_s_ = std::sqrt(std::max(0.0, mean_of(kSquares) - mean_s_ * mean_s_));
  const Duration before = threshold_;
  threshold_ = choice_.worthwhile() ? choice_.threshold : kNoThreshold;
  window_mixed_ = threshold_ != before;
  estimated_at_ = step;
  ++estimates_;
  behind_ = false;
  catching_up_ = totals_[kLatencies] == 0.0;  // without latencies, estimate again soon
}

std::optional<ThresholdEstimate> ThresholdAgreement::estimate() const {
  if (!(mean_s_ > 0.0)) return std::nullopt;
  const TimingModel model{.workers = options_.ranks,
                          .micro_batches = options_.micro_batches,
                          .micro_batch_mean_s = mean_s_,
                          .micro_batch_deviation_s = deviation_s_,
                          .overhead_s = static_cast<double>(overhead_.count()) / kNsPerSecond};
  const ThresholdPrediction predicted = model.best(model.slowest_s() / kModelCandidates);
  return ThresholdEstimate{.threshold = choice_.threshold,
                           .drop_rate = choice_.drop_rate,
                           .time_cut = choice_.time_cut,
                           .effective_speedup = choice_.effective_speedup,
                           .predicted_threshold_s = predicted.threshold_s,
                           .predicted_drop_rate = predicted.drop_rate,
                           .predicted_effective_speedup = predicted.effective_speedup,
                           .micro_batch_mean_s = mean_s_,
                           .micro_batch_deviation_s = deviation_s_,
                           .overhead_s = model.overhead_s};
}

}  // namespace leeway::budget
