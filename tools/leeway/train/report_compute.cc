// The part of the report on delays and dropped work.
#include <string>

#include "format.h"
#include "train/report_columns.h"
#include "train/report_lines.h"

namespace leeway::tools::train {
namespace {

bool is_uneven(const ComputeSettings& compute) {
  return compute.drops() || compute.straggler.kind != StragglerModel::Kind::none;
}

std::string threshold_text(const TrainReport& report) {
  const auto in_force = values_of(report, &ComputeSummary::threshold_ms);
  return in_force.empty() ? "-" : format("%.2f", mean(in_force));
}

std::string warning_line(const TrainReport& report) {
  for (const SeedOutcome& outcome : report.outcomes) {
    const std::string& text = outcome.lossy.compute.warning;
    if (!text.empty()) return "warning: " + text + "\n";
  }
  return "";
}

}  // namespace

std::string compute_header(const ComputeSettings& compute) {
  if (!is_uneven(compute)) return "";
  std::string text = format("computing: %d micro-batches a step, straggler %s",
                            compute.micro_batches, to_string(compute.straggler).c_str());
  if (!compute.drops()) return text + "\n";
  return text + format("\nthreshold %s, normalisation %s, compensation %s\n",
                       to_string(compute.threshold).c_str(), to_string(compute.normalisation),
                       to_string(compute.compensation));
}

std::string compute_rows(const TrainReport& report) {
  if (!is_uneven(report.settings.compute)) return "";
  std::string text = row_of(report, "samples a second", "%.1f",
                            [](const RunResult& r) { return r.samples_per_second(); });
  if (!report.settings.compute.drops()) return text;
  text += row_of(report, "optimizer steps", "%.0f",
                 [](const RunResult& r) { return static_cast<double>(r.compute.steps); });
  text += row_of(report, "samples used", "%.0f",
                 [](const RunResult& r) { return static_cast<double>(r.compute.samples); });
  text += row_of(report, "micro-batches dropped, %", "%.2f",
                 [](const RunResult& r) { return 100.0 * r.compute.drop_rate(); });
  return text + row_of_lossy(report, "threshold at the end, ms", threshold_text(report));
}

std::string speedup_line(const TrainReport& report) {
  if (!report.settings.compute.drops()) return "";
  std::string text;
  if (const auto measured = speedups(report); !measured.empty()) {
    const Spread spread = spread_of(measured);
    text += format("effective speed-up: %.3f measured", spread.mean);
    if (measured.size() > 1) text += format(" (from %.3f to %.3f)", spread.min, spread.max);
    text += "\n";
  }
  const auto searched = values_of(report, &ComputeSummary::speedup_predicted);
  const auto modelled = values_of(report, &ComputeSummary::speedup_modelled);
  if (!searched.empty() && !modelled.empty()) {
    text += format("effective speed-up: %.3f predicted by the search, %.3f by the normal model\n",
                   mean(searched), mean(modelled));
  }
  return text + warning_line(report);
}

}  // namespace leeway::tools::train
