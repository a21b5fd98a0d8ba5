// The table of `leeway train`.
#include "format.h"
#include "train/report_columns.h"
#include "train/report_lines.h"
#include "train/train_report.h"

namespace leeway::tools::train {

namespace {

struct Widths {
  int name;
  int column;
};
constexpr Widths widths_of(std::size_t columns) {
  return columns > 2 ? Widths{32, 14} : Widths{34, 16};
}

}  // namespace

std::string row(const char* name, const std::vector<std::string>& texts) {
  const Widths widths = widths_of(texts.size());
  std::string text = format("  %-*s", widths.name, name);
  for (const std::string& column : texts) text += format(" %*s", widths.column, column.c_str());
  return text + "\n";
}

std::string row_by_column(const TrainReport& report, const char* name,
                          const std::function<std::string(Column)>& text) {
  std::vector<std::string> texts;
  for (const Column column : columns_of(report)) texts.push_back(text(column));
  return row(name, texts);
}

std::string row_of(const TrainReport& report, const char* name, const char* pattern,
                   const Field& field) {
  return row_by_column(report, name, [&](Column column) {
    const auto values = values_of(report, column, field);
    return values.empty() ? "-" : format(pattern, mean(values));
  });
}

std::string row_of_lossy(const TrainReport& report, const char* name, const std::string& text) {
  return row_by_column(report, name,
                       [&](Column column) { return column == Column::lossy ? text : "-"; });
}

namespace {

std::string change_line(const TrainReport& report) {
  const auto values = changes_percent(report);
  if (values.empty()) return "";
  const Spread spread = spread_of(values);
  std::string text = format("\nchange of validation perplexity: %+.2f %%", spread.mean);
  if (values.size() > 1) {
    text += format(" as a mean over %zu seeds (standard deviation %.2f, from %+.2f to %+.2f)",
                   values.size(), spread.standard_deviation, spread.min, spread.max);
  }
  return text + "\n";
}

std::string drift_rows(const TrainReport& report) {
  if (report.settings.mode != Mode::replica) return "";
  // RMS values have the unit of the parameters, so they can be compared with a learning rate.
  const auto rms_row = [&](const char* name, double DriftSummary::*member) {
    return row_of(report, name, "%.3g",
                  [=](const RunResult& run) { return rms(drift_of(run).*member); });
  };
  std::string text = rms_row("drift between replicas, rms", &DriftSummary::pair_measured) +
                     rms_row("  predicted from optimizer steps", &DriftSummary::pair_predicted) +
                     rms_row("  predicted from gaps", &DriftSummary::pair_predicted_gap) +
                     rms_row("drift from the owner, rms", &DriftSummary::owner_measured) +
                     rms_row("  predicted from optimizer steps", &DriftSummary::owner_predicted);
  text += row_of(report, "mean age of a parameter, steps", "%.4f",
                 [](const RunResult& run) { return drift_of(run).age_mean; });
  return text + row_by_column(report, "oldest parameter seen, steps", [&](Column column) {
           const auto ages = values_of(report, column, age_max_seen);
           return ages.empty() ? "-" : format("%.0f", largest(ages));
         });
}

std::string age_line(const TrainReport& report) {
  constexpr std::size_t kLineMax = 80;
  const DriftSummary drift = drift_of(report.outcomes.front().lossy);
  std::string text = "ages of parameters in the lossy run:";
  std::size_t line_start = 0;
  bool any = false;
  for (std::size_t age = 0; age < kAgeBins; ++age) {
    const double share = drift.age_shares[age];
    if (!(share > 0)) continue;
    any = true;
    const std::string piece =
        format(" %zu%s: %.3g %%", age, age + 1 == kAgeBins ? "+" : "", 100.0 * share);
    if (text.size() + piece.size() - line_start > kLineMax) {
      line_start = text.size() + 1;
      text += "\n ";
    }
    text += piece;
  }
  return any ? text + "\n" : "";
}

// Describes how the two halves of a step are sent, in a line for each half.
std::string format_halves(const Settings& settings) {
  const CollectiveOptions& reduce = settings.reduce;
  std::string text = format(
      "gradients: codec %s%s, %s, estimator %s\n", leeway::to_string(reduce.codec).c_str(),
      settings.error_feedback ? " with error feedback" : "",
      leeway::to_string(reduce.delivery.kind).data(), leeway::to_string(reduce.estimator).data());
  if (settings.mode == Mode::replica) {
    return text + format("parameters: codec %s, %s\n",
                         leeway::to_string(settings.replica.codec).c_str(),
                         leeway::to_string(settings.replica.delivery).data());
  }
  return text + format("their average: codec %s, %s\n",
                       leeway::to_string(reduce.spread_codec.value_or(reduce.codec)).c_str(),
                       leeway::to_string(reduce.spread).data());
}

std::string title_of(const TrainReport& report, Column column) {
  if (column == Column::no_threshold) return "no threshold";
  if (column == Column::twin) return report.outcomes.front().twin ? "loss-free twin" : "(no twin)";
  const FaultOptions& faults = report.settings.communicator.faults;
  if (!faults.any()) return "network's loss";
  std::string title = format("%g %% loss", 100.0 * faults.loss);
  if (faults.burst > 1) title += format(", burst %g", faults.burst);
  return title;
}

}  // namespace

std::string format_header(const TrainReport& report, const Corpus& corpus) {
  const Settings& settings = report.settings;
  return format("leeway train: %d rank%s, %s mode, %llu steps of %d x %d characters a rank\n",
                report.ranks, report.ranks == 1 ? "" : "s", to_string(settings.mode),
                static_cast<unsigned long long>(settings.steps), settings.batch, settings.context) +
         format_halves(settings) + compute_header(settings.compute) +
         format("corpus %s: %zu characters to learn, %zu to validate, %d distinct\n",
                report.corpus.c_str(), corpus.training().size(), corpus.validation().size(),
                corpus.vocabulary());
}

std::string format_seed(const SeedOutcome& outcome) {
  std::string text =
      format("seed %llu: validation perplexity %.4f", static_cast<unsigned long long>(outcome.seed),
             outcome.lossy.perplexity);
  if (outcome.twin) {
    text += format(", twin %.4f, change %+.2f %%", outcome.twin->perplexity,
                   change_percent(outcome.lossy.perplexity, outcome.twin->perplexity));
  }
  return text + "\n";
}

std::string format_table(const TrainReport& report) {
  std::string text =
      row_by_column(report, "", [&](Column column) { return title_of(report, column); });
  text += row_of(report, "validation perplexity", "%.4f",
                 [](const RunResult& r) { return r.perplexity; });
  text += row_of(report, "packets lost, %", "%.3f",
                 [](const RunResult& r) { return 100.0 * r.loss_observed; });
  text += row_of(report, "sent by all ranks, MB", "%.1f",
                 [](const RunResult& r) { return static_cast<double>(r.bytes_sent) / 1e6; });
  text += row_of(report, "step time, median, ms", "%.2f",
                 [](const RunResult& r) { return r.step_ms_p50; });
  text += row_of(report, "step time, 99th percentile, ms", "%.2f",
                 [](const RunResult& r) { return r.step_ms_p99; });
  text += row_of(report, "training time, s", "%.1f", [](const RunResult& r) { return r.seconds; });
  text += compute_rows(report) + noise_rows(report) + codec_rows(report) + drift_rows(report);
  return text + change_line(report) + speedup_line(report) + noise_warning(report) +
         age_line(report) +
         format("for comparison, a model of character pairs: perplexity %.2f\n",
                report.bigram_perplexity);
}

}  // namespace leeway::tools::train
