#include "report/plot_names.h"

#include <array>

#include "report/report.h"
#include "report/round_column.h"
#include "scenario/field_path.h"
#include "scenario/nearest_name.h"

namespace leeway::sim {
namespace {

struct PooledMeasure {
  std::string_view name;
  std::vector<double> RunRecord::*values;
  double Percentiles::*figure;
};

constexpr std::array kPooled = {
    PooledMeasure{"pooled.round_ms.p50", &RunRecord::round_ms, &Percentiles::p50},
    PooledMeasure{"pooled.round_ms.p90", &RunRecord::round_ms, &Percentiles::p90},
    PooledMeasure{"pooled.round_ms.p99", &RunRecord::round_ms, &Percentiles::p99},
    PooledMeasure{"pooled.round_ms.p99.9", &RunRecord::round_ms, &Percentiles::p99_9},
    PooledMeasure{"pooled.call_ms.p50", &RunRecord::call_ms, &Percentiles::p50},
    PooledMeasure{"pooled.call_ms.p90", &RunRecord::call_ms, &Percentiles::p90},
    PooledMeasure{"pooled.call_ms.p99", &RunRecord::call_ms, &Percentiles::p99},
    PooledMeasure{"pooled.call_ms.p99.9", &RunRecord::call_ms, &Percentiles::p99_9},
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  for (const std::string& other : names) {
    if (other == name) return true;
  }
  return false;
}

// Returns true also for a field that --set has fixed: it is not swept any more, but a plot may name
// it.
bool is_field(std::string_view path) {
  return scenario::parse_path(*scenario::Scenario::descriptor(), path).ok();
}

Status refuse(int plot, const std::string& part, const std::string& name, const char* what,
              const std::vector<std::string>& candidates) {
  return Status::error(StatusCode::kInvalidArgument, "report.plot[%d].%s: \"%s\" is no %s%s", plot,
                       part.c_str(), name.c_str(), what,
                       scenario::suggestion(name, candidates).c_str());
}

std::vector<std::string> round_names() {
  std::vector<std::string> names;
  for (const RoundColumn& column : round_columns()) names.emplace_back(column.name);
  return names;
}

Status check_plot(int number, const scenario::Report::Plot& plot,
                  const std::vector<std::string>& swept, const std::vector<std::string>& measures) {
  std::vector<std::string> x_names = swept;
  x_names.emplace_back(kRoundName);
  x_names.insert(x_names.end(), measures.begin(), measures.end());
  if (!contains(x_names, plot.x()) && !is_field(plot.x())) {
    return refuse(number, "x", plot.x(), "swept field and no measure", x_names);
  }
  const bool rounds = plot.x() == kRoundName;
  const std::vector<std::string> y_names = rounds ? round_names() : measures;
  const std::vector<std::string> drawn = drawn_measures(plot);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const std::string part = i == 0 ? "y" : "also_y[" + std::to_string(i - 1) + "]";
    if (!contains(y_names, drawn[i])) {
      return refuse(number, part, drawn[i], rounds ? "figure of a round" : "measure", y_names);
    }
  }
  for (const std::string& field : plot.by()) {
    if (contains(swept, field) || is_field(field)) continue;
    return refuse(number, "by", field, "swept field", swept);
  }
  return {};
}

}  // namespace

Spread measure_of(const std::vector<const RunRecord*>& runs, std::string_view name) {
  for (const PooledMeasure& pooled : kPooled) {
    if (name != pooled.name) continue;
    std::vector<double> values;
    for (const RunRecord* run : runs) {
      values.insert(values.end(), (run->*pooled.values).begin(), (run->*pooled.values).end());
    }
    return spread_of(std::vector<double>{percentiles_of(std::move(values)).*pooled.figure});
  }
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    for (const Measure& measure : run->measures) {
      if (measure.name == name) values.push_back(measure.value);
    }
  }
  return spread_of(values);
}

std::vector<std::string> drawn_measures(const scenario::Report::Plot& plot) {
  std::vector<std::string> names = {plot.y()};
  names.insert(names.end(), plot.also_y().begin(), plot.also_y().end());
  return names;
}

std::vector<std::string> plot_measures(const RunRecord& run) {
  std::vector<std::string> names;
  for (const Measure& measure : run.measures) names.push_back(measure.name);
  for (const PooledMeasure& pooled : kPooled) names.emplace_back(pooled.name);
  return names;
}

Status check_plots(const scenario::Scenario& scenario, const RunRecord& first) {
  std::vector<std::string> swept;
  for (const scenario::Sweep& sweep : scenario.sweep()) swept.push_back(sweep.field());
  const std::vector<std::string> measures = plot_measures(first);
  for (int i = 0; i < scenario.report().plot_size(); ++i) {
    const Status status = check_plot(i, scenario.report().plot(i), swept, measures);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace leeway::sim
