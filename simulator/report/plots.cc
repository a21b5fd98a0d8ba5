#include "report/plots.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "report/label.h"
#include "report/number_text.h"
#include "report/plot_names.h"
#include "report/round_column.h"

namespace leeway::sim {
namespace {

using Runs = std::vector<const RunRecord*>;
using Plot = scenario::Report::Plot;

constexpr std::size_t kSeriesMax = 16;  // more cannot be told from each other

// A measure that is drawn.
struct Figure {
  std::string name;
  Label label;
  const RoundColumn* column = nullptr;  // over rounds
  std::string curve;                    // in the legend; empty where it is the only one
};

// One point before it is averaged.
struct Place {
  std::string x_text;  // of a swept field
  double x = 0;
  Runs runs;
  std::size_t cells = 0;
};
struct Curve {
  std::string name;
  std::vector<Place> places;
};

template <typename T, typename Match>
T& find_or_add(std::vector<T>& list, T fresh, Match&& match) {
  const auto found = std::find_if(list.begin(), list.end(), match);
  return found != list.end() ? *found : list.emplace_back(std::move(fresh));
}

std::string setting_or_empty(const CellSummary& cell, const std::string& field) {
  const std::string* value = cell.setting(field);
  return value == nullptr ? std::string() : *value;
}

// Those of plot.by that are swept.
std::vector<std::string> curve_fields(const Plot& plot, const CellSummary& cell) {
  std::vector<std::string> fields;
  for (const std::string& field : plot.by()) {
    if (cell.setting(field) != nullptr) fields.push_back(field);
  }
  return fields;
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + text;
  return all;
}

std::string curve_name(const Plot& plot, const CellSummary& cell) {
  std::vector<std::string> values;
  for (const std::string& field : curve_fields(plot, cell)) values.push_back(*cell.setting(field));
  return joined(values, ", ");
}

// Cells by `by`, and within it by x; each cell its own place where x is a measure.
std::vector<Curve> curves_of(const Plot& plot, std::span<const CellSummary> cells,
                             bool x_is_field) {
  std::vector<Curve> curves;
  for (const CellSummary& cell : cells) {
    const std::string name = curve_name(plot, cell);
    Curve& curve = find_or_add(curves, Curve{name, {}},
                               [&](const Curve& other) { return other.name == name; });
    const std::string x =
        x_is_field ? setting_or_empty(cell, plot.x()) : std::to_string(cell.cell->index);
    Place& place = find_or_add(curve.places, Place{x, 0, {}, 0},
                               [&](const Place& other) { return other.x_text == x; });
    place.runs.insert(place.runs.end(), cell.runs.begin(), cell.runs.end());
    ++place.cells;
  }
  return curves;
}

// Numbers of the places, or categories where a text is no number.
std::vector<std::string> number_places(std::vector<Curve>& curves) {
  std::vector<std::string> texts;
  bool numbers = true;
  for (const Curve& curve : curves) {
    for (const Place& place : curve.places) {
      if (std::find(texts.begin(), texts.end(), place.x_text) != texts.end()) continue;
      texts.push_back(place.x_text);
      numbers = numbers && number_of(place.x_text).has_value();
    }
  }
  for (Curve& curve : curves) {
    for (Place& place : curve.places) {
      const auto at = std::find(texts.begin(), texts.end(), place.x_text) - texts.begin();
      place.x = numbers ? *number_of(place.x_text) : static_cast<double>(at);
    }
    std::stable_sort(curve.places.begin(), curve.places.end(),
                     [](const Place& a, const Place& b) { return a.x < b.x; });
  }
  return numbers ? std::vector<std::string>() : texts;
}

std::string name_of(const Curve& curve, const Figure& figure) {
  if (curve.name.empty() || figure.curve.empty()) return curve.name + figure.curve;
  return curve.name + ", " + figure.curve;
}

// A colour for each value of `by` and a dash for each measure; without `by` every measure has its
// colour, and only what is predicted is dashed, each in its way: often it lies on what is measured.
std::optional<Stroke> stroke_of(std::size_t curve, const Chart& chart, std::size_t figure,
                                const std::vector<Figure>& figures) {
  if (figures.size() == 1) return std::nullopt;
  if (!chart.by.empty()) return Stroke{curve, figure};
  const bool predicted = figures[figure].name.find("predicted") != std::string::npos;
  return Stroke{figure, predicted ? std::max<std::size_t>(figure, 1) : 0};
}

// Returns how many points had no place on a logarithmic axis.
std::size_t add_series(Chart& chart, Series series, const Curve& curve, const Figure& figure) {
  std::size_t left_out = 0;
  for (const Place& place : curve.places) {
    const Spread value = measure_of(place.runs, figure.name);
    if (value.count == 0) continue;
    const double at = value.mean * figure.label.factor;
    if ((chart.x.log && place.x <= 0) || (chart.y.log && at <= 0)) {
      ++left_out;
      continue;
    }
    series.x.push_back(place.x);
    series.y.push_back(at);
    series.error.push_back(value.error * figure.label.factor);
  }
  if (!series.x.empty()) chart.series.push_back(std::move(series));
  return left_out;
}

void add_note(Chart& chart, const std::string& sentence) {
  chart.note += (chart.note.empty() ? "" : " ") + sentence;
}

// Keeps evenly chosen values of `by` where there are too many, each with all its measures.
void thin_out(std::vector<Curve>& curves, std::size_t figures, Chart& chart) {
  const std::size_t most = std::max<std::size_t>(kSeriesMax / figures, 2);
  if (curves.size() <= most) return;
  add_note(chart, std::to_string(most * figures) + " of " +
                      std::to_string(curves.size() * figures) +
                      " curves are shown, evenly chosen.");
  std::vector<Curve> kept;
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(curves[i * (curves.size() - 1) / (most - 1)]));
  }
  curves = std::move(kept);
}

// Fields that are swept and not shown.
void note_other_fields(Chart& chart, const Plot& plot, std::span<const CellSummary> cells) {
  std::vector<std::string> others = swept_fields(cells);
  std::erase_if(others, [&](const std::string& field) {
    return field == plot.x() || std::ranges::find(plot.by(), field) != plot.by().end();
  });
  if (!others.empty()) add_note(chart, "Mean over all values of " + joined(others, ", ") + ".");
}

Chart over_rounds_chart(const Plot& plot, std::span<const CellSummary> cells,
                        const std::vector<Figure>& figures, Chart chart) {
  std::vector<Curve> curves = curves_of(plot, cells, true);  // x is no setting: one place each
  thin_out(curves, figures.size(), chart);
  chart.x.title = "Round";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t k = 0; k < figures.size(); ++k) {
      Series series = over_rounds(name_of(curves[i], figures[k]), curves[i].places.front().runs,
                                  *figures[k].column);
      series.stroke = stroke_of(i, chart, k, figures);
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
  }
  const std::size_t step = rounds_per_point(curves.front().places.front().runs);
  if (step > 1) add_note(chart, "A point is the mean of " + std::to_string(step) + " rounds.");
  note_other_fields(chart, plot, cells);
  return chart;
}

Chart over_cells_chart(const Plot& plot, std::span<const CellSummary> cells,
                       const std::vector<Figure>& figures, Chart chart) {
  const bool x_is_field = cells.front().setting(plot.x()) != nullptr;
  const Label x = x_is_field ? label_of_field(plot.x()) : label_of_measure(plot.x());
  chart.x.title = title_of(x);
  std::vector<Curve> curves = curves_of(plot, cells, x_is_field);
  chart.x.swept = x_is_field;
  if (x_is_field) {
    chart.x.categories = number_places(curves);
    if (!chart.x.categories.empty()) {
      chart.kind = chart.y.log ? Chart::Kind::points : Chart::Kind::bars;  // bars begin at zero
    }
    note_other_fields(chart, plot, cells);
  } else {
    if (chart.by.empty()) chart.kind = Chart::Kind::points;
    for (Curve& curve : curves) {
      for (Place& place : curve.places) place.x = measure_of(place.runs, plot.x()).mean * x.factor;
    }
  }
  thin_out(curves, figures.size(), chart);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t k = 0; k < figures.size(); ++k) {
      Series series{name_of(curves[i], figures[k]), {}, {}, {}};
      series.stroke = stroke_of(i, chart, k, figures);
      left_out += add_series(chart, std::move(series), curves[i], figures[k]);
    }
  }
  if (left_out > 0) {
    add_note(chart, std::to_string(left_out) +
                        (left_out == 1 ? " point at zero is" : " points at zero are") +
                        " not shown: the axis is logarithmic.");
  }
  return chart;
}

// The end of a path that says what it is: "rate_mbps", "random.p".
std::string short_name(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return path;
  if (path.size() - dot > 3) return path.substr(dot + 1);
  const std::size_t before = path.rfind('.', dot - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

std::string default_title(const Plot& plot, const std::vector<Figure>& figures, bool x_is_field,
                          std::vector<std::string> by) {
  std::string y = figures.front().label.text;
  for (std::size_t i = 1; i < figures.size(); ++i) {
    y += (i + 1 < figures.size() ? ", " : " and ") + figures[i].curve;
  }
  std::string x = x_is_field ? short_name(plot.x()) : label_of_measure(plot.x()).text;
  if (!x_is_field) x[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(x[0])));
  std::ranges::transform(by, by.begin(), short_name);
  return y + " over " + x + (by.empty() ? "" : ", by " + joined(by, " and "));
}

// Empty where x is "round" and a measure is no figure of a round.
std::vector<Figure> figures_of(const Plot& plot, std::string& axis_title) {
  const bool rounds = plot.x() == kRoundName;
  std::vector<Figure> figures;
  std::vector<Label> labels;
  for (const std::string& name : drawn_measures(plot)) {
    const RoundColumn* column = rounds ? find_round_column(name) : nullptr;
    if (rounds && column == nullptr) return {};
    labels.push_back(rounds ? column->label : label_of_measure(name));
    figures.push_back({name, labels.back(), column, {}});
  }
  const SharedLabel shared = share_axis(labels);
  axis_title = shared.axis;
  for (std::size_t i = 0; i < figures.size(); ++i) figures[i].curve = shared.curves[i];
  return figures;
}

}  // namespace

std::vector<std::string> swept_fields(std::span<const CellSummary> cells) {
  std::vector<std::string> fields;
  if (cells.empty()) return fields;
  for (const scenario::Setting& setting : cells.front().cell->settings) {
    fields.push_back(setting.field);
  }
  return fields;
}

Chart draw_plot(const Plot& plot, std::span<const CellSummary> cells) {
  Chart chart;
  if (cells.empty()) return chart;
  const std::vector<std::string> by = curve_fields(plot, cells.front());
  chart.by = joined(by, ", ");
  chart.x.log = plot.log_x();
  chart.y.log = plot.log_y();
  const std::vector<Figure> figures = figures_of(plot, chart.y.title);
  if (figures.empty()) return chart;
  const bool x_is_field = cells.front().setting(plot.x()) != nullptr;
  chart.title = plot.has_title() ? plot.title() : default_title(plot, figures, x_is_field, by);
  if (plot.x() == kRoundName) return over_rounds_chart(plot, cells, figures, std::move(chart));
  const bool x_known = x_is_field || measure_of(cells.front().runs, plot.x()).count > 0;
  return x_known ? over_cells_chart(plot, cells, figures, std::move(chart)) : chart;
}

}  // namespace leeway::sim
