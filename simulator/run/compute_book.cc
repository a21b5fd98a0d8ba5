#include "run/compute_book.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "budget/timing_model.h"
#include "compute/drop_compute.h"
#include "run/measures.h"
#include "run/percentile.h"

namespace leeway::sim {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kNsPerMs = 1e6;
// Step, in seconds, of the search for the best threshold of the model.
constexpr double kPredictionStep = 0.005;

// Returns no model if ranks differ, because the model assumes that all workers are alike.
std::optional<budget::TimingModel> model_of(const scenario::Scenario& scenario) {
  if (scenario.compute_size() != 1 || scenario.compute(0).ranks() != "*" ||
      !scenario.compute(0).has_drop_compute() || scenario.slow_size() != 0) {
    return std::nullopt;
  }
  const auto& noise = scenario.compute(0).drop_compute();
  const DropComputeMoments moments = drop_compute_moments(noise.factor());
  const double base_s = noise.micro_batch_ms() / 1e3;
  return budget::TimingModel{.workers = scenario.ranks(),
                             .micro_batches = noise.micro_batches(),
                             .micro_batch_mean_s = base_s * moments.mean,
                             .micro_batch_deviation_s = base_s * moments.deviation};
}

}  // namespace

struct ComputeBook::Totals {
  std::vector<double> step_ms;
  double ns = 0;          // time of the steps
  double longer_ns = 0;   // additional time that they would have lasted without a threshold
  double compute_ns = 0;  // time of the slowest ranks
  double completed = 0;
  double planned = 0;
  double threshold_ns = 0;  // sum of thresholds over ranks and rounds
  double thresholds = 0;

  // Returns the mean threshold, or infinity if there was none.
  double threshold_s() const {
    return thresholds > 0 ? threshold_ns / thresholds / kNsPerSecond : HUGE_VAL;
  }
};

void ComputeBook::on_begin(Instant now, std::uint32_t number, const ComputeDraw& draw) {
  if (number >= rounds_.size()) rounds_.resize(number + 1);
  Round& round = rounds_[number];
  round.first_begin_ns = std::min(round.first_begin_ns, now.ns);
  round.last_end_ns = std::max(round.last_end_ns, now.ns + draw.ns);
  round.last_full_end_ns = std::max(round.last_full_end_ns, now.ns + draw.full_ns);
  round.threshold_ns += draw.threshold_ns;
  round.completed += draw.micro_batches.completed;
  round.planned += draw.micro_batches.planned;
  ++round.ranks;
  round.with_threshold += draw.threshold_ns > 0;
}

ComputeBook::Totals ComputeBook::totals_of(const std::vector<RoundRecord>& rounds) const {
  const auto dropping = [&](const RoundRecord& record) {
    const Round& round = rounds_[record.round];
    return round.with_threshold == round.ranks;
  };
  const bool any = std::ranges::any_of(rounds, dropping);
  Totals totals;
  std::int64_t before_ns = rounds.empty() ? 0 : rounds.front().begin_ns;
  for (const RoundRecord& record : rounds) {
    const auto step_ns = static_cast<double>(record.end_ns - before_ns);
    before_ns = record.end_ns;
    if (any && !dropping(record)) continue;
    const Round& round = rounds_[record.round];
    totals.step_ms.push_back(step_ns / kNsPerMs);
    totals.ns += step_ns;
    totals.longer_ns += static_cast<double>(round.last_full_end_ns - round.last_end_ns);
    totals.compute_ns += static_cast<double>(round.last_end_ns - round.first_begin_ns);
    totals.completed += static_cast<double>(round.completed);
    totals.planned += static_cast<double>(round.planned);
    totals.threshold_ns += static_cast<double>(round.threshold_ns);
    totals.thresholds += round.with_threshold;
  }
  return totals;
}

std::vector<Measure> ComputeBook::measures(const std::vector<RoundRecord>& rounds,
                                           const budget::ThresholdChoice* searched) const {
  const bool counts = std::ranges::any_of(
      scenario_.compute(), [](const auto& compute) { return compute.has_drop_compute(); });
  if (!counts || rounds.empty()) return {};
  const Totals totals = totals_of(rounds);
  const double kept = totals.completed / totals.planned;
  std::vector<Measure> out = {
      {"compute.rounds", static_cast<double>(totals.step_ms.size())},
      {"compute.drop_rate", 1 - kept},
      {"compute.samples_per_s", totals.completed * kNsPerSecond / totals.ns},
      {"compute.speedup", kept * (totals.ns + totals.longer_ns) / totals.ns},
      {"compute.overhead_ms",
       (totals.ns - totals.compute_ns) / kNsPerMs / static_cast<double>(totals.step_ms.size())},
  };
  append_percentiles("compute.step_ms", totals.step_ms, out);
  out.push_back(
      {"compute.threshold_ms", totals.thresholds > 0 ? totals.threshold_s() * 1e3 : kUnknown});
  append_predictions(totals, out);
  if (searched != nullptr) {
    out.push_back({"compute.speedup_searched", 1 + searched->effective_speedup});
  }
  return out;
}

void ComputeBook::append_predictions(const Totals& totals, std::vector<Measure>& out) const {
  auto model = model_of(scenario_);
  if (!model) return;
  model->overhead_s = std::max(0.0, totals.ns - totals.compute_ns) / kNsPerSecond /
                      static_cast<double>(totals.step_ms.size());
  const auto at = model->predict(totals.threshold_s());
  out.push_back({"compute.drop_rate_predicted", at.drop_rate});
  out.push_back({"compute.speedup_predicted", 1 + at.effective_speedup});
  const auto best = model->best(kPredictionStep);
  out.push_back({"compute.speedup_best_predicted", 1 + best.effective_speedup});
  out.push_back({"compute.threshold_ms_best_predicted", best.threshold_s * 1e3});
}

}  // namespace leeway::sim
