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

constexpr std::size_t kSeriesMax = 16;  // more curves cannot be told from each other
// Least distance of two x values on an axis, as a share of its width. Labels of closer values would
// overlap.
constexpr double kApartMin = 0.04;
constexpr std::size_t kEvenMax = 12;  // most values of x that may stand at even distances

// A measure that the plot draws.
struct Figure {
  std::string name;
  Label label;
  const RoundColumn* column = nullptr;  // set if x is "round"
  std::string curve;                    // text in the legend; empty for the only curve
};

// One x value of a curve, with the runs whose mean is drawn there.
struct Place {
  std::string x_text;  // text of a swept field
  std::string x_name;  // that text as people read it
  double x = 0;
  Runs runs;
};
struct Curve {
  std::string key;  // the values of `by`
  std::string name;
  std::vector<Place> places;
};

template <typename T, typename Match>
T& find_or_add(std::vector<T>& list, T fresh, Match&& match) {
  const auto found = std::find_if(list.begin(), list.end(), match);
  return found != list.end() ? *found : list.emplace_back(std::move(fresh));
}

const scenario::Setting* find_setting(const CellSummary& cell, const std::string& field) {
  for (const scenario::Setting& setting : cell.cell->settings) {
    if (setting.field == field) return &setting;
  }
  return nullptr;
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + text;
  return all;
}

// Returns the settings of the fields in plot.by that are swept.
std::vector<const scenario::Setting*> curve_settings(const Plot& plot, const CellSummary& cell) {
  std::vector<const scenario::Setting*> settings;
  for (const std::string& field : plot.by()) {
    if (const scenario::Setting* found = find_setting(cell, field)) settings.push_back(found);
  }
  return settings;
}

// Returns a curve without places. Its name omits fields that the cell's endpoint does not use; for
// example, a TCP ring has no delivery class.
Curve empty_curve(const Plot& plot, const CellSummary& cell) {
  Curve curve;
  for (const scenario::Setting* setting : curve_settings(plot, cell)) {
    curve.key += (setting->acts ? setting->value : std::string()) + '\n';
    if (setting->acts) curve.name += (curve.name.empty() ? "" : ", ") + name_of(*setting);
  }
  return curve;
}

// Groups cells into curves by the fields in `by`, and each curve into places by x. If x is a
// measure, each cell is a place of its own.
std::vector<Curve> curves_of(const Plot& plot, std::span<const CellSummary> cells) {
  std::vector<Curve> curves;
  for (const CellSummary& cell : cells) {
    const scenario::Setting* const swept = find_setting(cell, plot.x());
    Curve& curve = find_or_add(
        curves, empty_curve(plot, cell),
        [&, fresh = empty_curve(plot, cell)](const Curve& c) { return c.key == fresh.key; });
    Place fresh;
    if (swept == nullptr) {
      if (plot.x() != kRoundName) fresh.x_text = std::to_string(cell.cell->index);
    } else if (swept->acts) {
      fresh.x_text = swept->value;
      fresh.x_name = name_of(*swept);
    }
    Place& place = find_or_add(curve.places, fresh,
                               [&](const Place& other) { return other.x_text == fresh.x_text; });
    place.runs.insert(place.runs.end(), cell.runs.begin(), cell.runs.end());
  }
  return curves;
}

// If a curve's endpoint does not use the field x, the curve has one place. Repeats it at every x.
void spread_out(std::vector<Curve>& curves) {
  std::vector<Place> places;
  for (const Curve& curve : curves) {
    for (const Place& place : curve.places) {
      const bool known = std::ranges::any_of(
          places, [&](const Place& other) { return other.x_text == place.x_text; });
      if (!place.x_name.empty() && !known) places.push_back(place);
    }
  }
  for (Curve& curve : curves) {
    if (curve.places.size() != 1 || !curve.places.front().x_name.empty()) continue;
    const Runs runs = curve.places.front().runs;
    curve.places = places;
    for (Place& place : curve.places) place.runs = runs;
  }
}

// Returns true if two neighbours are too close to each other on a linear axis. `values` must
// ascend.
bool are_crowded(const std::vector<double>& values) {
  if (values.size() < 3 || values.size() > kEvenMax) return false;
  const double least = kApartMin * (values.back() - values.front());
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] - values[i - 1] < least) return true;
  }
  return false;
}

// Puts the x values at their numbers. If one of them is no number, or two numbers would overlap,
// puts them at even distances and returns their names.
std::vector<std::string> number_places(std::vector<Curve>& curves, double factor, bool log) {
  std::vector<Place> places;  // each x once
  for (const Curve& curve : curves) {
    for (const Place& place : curve.places) {
      find_or_add(places, place, [&](const Place& p) { return p.x_text == place.x_text; });
    }
  }
  const bool numbers = std::ranges::all_of(
      places, [](const Place& place) { return number_of(place.x_text).has_value(); });
  const auto value = [](const Place& place) { return *number_of(place.x_text); };
  if (numbers) std::ranges::stable_sort(places, {}, value);
  std::vector<double> values;
  for (const Place& place : places) {
    if (numbers) values.push_back(value(place));
  }
  const bool even = !numbers || (!log && are_crowded(values));
  for (Curve& curve : curves) {
    for (Place& place : curve.places) {
      const auto at = std::ranges::find(places, place.x_text, &Place::x_text) - places.begin();
      place.x = even ? static_cast<double>(at) : factor * value(place);
    }
    std::ranges::stable_sort(curve.places, {}, &Place::x);
  }
  std::vector<std::string> names;
  for (const Place& place : places) {
    if (even) names.push_back(numbers ? short_text(factor * value(place)) : place.x_name);
  }
  return names;
}

std::string curve_name(const Curve& curve, const Figure& figure) {
  if (curve.name.empty() || figure.curve.empty()) return curve.name + figure.curve;
  return curve.name + ", " + figure.curve;
}

// With `by`, each of its values gets a colour and each measure a dash pattern. Without `by`, each
// measure gets a colour. Then only predicted measures are dashed, because they often cover the
// measured ones.
std::optional<Stroke> stroke_of(std::size_t curve, const Chart& chart, std::size_t figure,
                                const std::vector<Figure>& figures) {
  if (figures.size() == 1) return std::nullopt;
  if (!chart.by.empty()) return Stroke{curve, figure};
  const bool predicted = figures[figure].name.find("predicted") != std::string::npos;
  return Stroke{figure, predicted ? std::max<std::size_t>(figure, 1) : 0};
}

// Adds a curve to the chart. Returns how many points a logarithmic axis cannot show.
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

// If there are too many curves, keeps evenly chosen ones, each with all its measures.
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

bool shows(const Plot& plot, const std::string& field) {
  return field == plot.x() || std::ranges::find(plot.by(), field) != plot.by().end();
}

// Notes swept fields that the picture does not show. For a field that varies alone the picture has
// only its first value, otherwise means over all values.
void note_other_fields(Chart& chart, const Plot& plot, std::span<const CellSummary> cells) {
  std::vector<std::string> others;
  for (const std::string& field : swept_fields(cells)) {
    if (shows(plot, field)) continue;
    std::vector<std::string> values;
    for (const CellSummary& cell : cells) {
      const std::string* value = cell.setting(field);
      if (value != nullptr)
        find_or_add(values, *value, [&](auto& other) { return other == *value; });
    }
    const scenario::Setting& first = *find_setting(cells.front(), field);
    if (values.size() == 1) add_note(chart, label_of(first).text + ": " + name_of(first) + ".");
    if (values.size() > 1) others.push_back(label_of(first).text);
  }
  if (!others.empty()) add_note(chart, "Mean over all values of: " + joined(others, ", ") + ".");
}

// Adds a note if there are so few records that p99.9 is just the largest.
void note_few_records(Chart& chart, const std::vector<Figure>& figures,
                      const std::vector<Curve>& curves) {
  constexpr std::size_t kBeyond = 1000;
  const bool asked = std::ranges::any_of(
      figures, [](const Figure& figure) { return figure.name.ends_with(".p99.9"); });
  if (!asked || curves.empty() || curves.front().places.empty()) return;
  std::size_t records = 0;
  for (const RunRecord* run : curves.front().places.front().runs) records += run->round_ms.size();
  if (records >= kBeyond) return;
  add_note(chart, "Of " + std::to_string(records) + " rounds a point, p99.9 is the longest.");
}

Chart over_rounds_chart(const Plot& plot, std::span<const CellSummary> cells,
                        const std::vector<Figure>& figures, Chart chart) {
  // Here x is the round and no setting, so each curve has a single place.
  std::vector<Curve> curves = curves_of(plot, cells);
  thin_out(curves, figures.size(), chart);
  chart.x.title = "Round";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t k = 0; k < figures.size(); ++k) {
      Series series = over_rounds(curve_name(curves[i], figures[k]), curves[i].places.front().runs,
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
  const scenario::Setting* const swept = find_setting(cells.front(), plot.x());
  const Label x = swept != nullptr ? label_of(*swept) : label_of_measure(plot.x());
  chart.x.title = title_of(x);
  std::vector<Curve> curves = curves_of(plot, cells);
  chart.x.swept = swept != nullptr;
  if (swept != nullptr) {
    spread_out(curves);
    chart.x.categories = number_places(curves, x.factor, chart.x.log);
    if (!chart.x.categories.empty() && number_of(swept->value)) {
      add_note(chart, "x is not to scale.");
    } else if (!chart.x.categories.empty()) {
      // Bars begin at zero, which a logarithmic axis does not have.
      chart.kind = chart.y.log ? Chart::Kind::points : Chart::Kind::bars;
    }
    note_other_fields(chart, plot, cells);
    note_few_records(chart, figures, curves);
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
      Series series{curve_name(curves[i], figures[k]), {}, {}, {}};
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

std::string in_sentence(std::string text) {
  if (text.size() < 2) return text;
  const bool name = std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!name) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string default_title(const Plot& plot, const std::vector<Figure>& figures,
                          const CellSummary& cell, const std::string& by) {
  std::string y = figures.front().label.text;
  for (std::size_t i = 1; i < figures.size(); ++i) {
    y += (i + 1 < figures.size() ? ", " : " and ") + figures[i].curve;
  }
  const scenario::Setting* const swept = find_setting(cell, plot.x());
  const std::string x = swept != nullptr ? label_of(*swept).text : label_of_measure(plot.x()).text;
  return y + " over " + in_sentence(x) + (by.empty() ? "" : ", by " + by);
}

// Returns the cells that a picture shows. If a field varies alone and is not shown, only cells with
// its first value belong.
std::vector<CellSummary> cells_shown(const Plot& plot, std::span<const CellSummary> cells) {
  std::vector<CellSummary> shown;
  for (const CellSummary& cell : cells) {
    const bool wanted = std::ranges::all_of(cell.cell->settings, [&](const auto& setting) {
      return setting.at_base || shows(plot, setting.field);
    });
    if (wanted) shown.push_back(cell);
  }
  return shown;
}

// Returns the measures to draw. Returns none if x is "round" and one of the measures does not exist
// for single rounds.
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

Chart draw_plot(const Plot& plot, std::span<const CellSummary> all_cells) {
  Chart chart;
  const std::vector<CellSummary> cells = cells_shown(plot, all_cells);
  if (cells.empty()) return chart;
  std::vector<std::string> by;
  for (const scenario::Setting* setting : curve_settings(plot, cells.front())) {
    by.push_back(in_sentence(label_of(*setting).text));
  }
  chart.by = joined(by, " and ");
  chart.x.log = plot.log_x();
  chart.y.log = plot.log_y();
  const std::vector<Figure> figures = figures_of(plot, chart.y.title);
  if (figures.empty()) return chart;
  chart.title =
      plot.has_title() ? plot.title() : default_title(plot, figures, cells.front(), chart.by);
  if (plot.x() == kRoundName) return over_rounds_chart(plot, cells, figures, std::move(chart));
  const bool x_known = find_setting(cells.front(), plot.x()) != nullptr ||
                       measure_of(cells.front().runs, plot.x()).count > 0;
  return x_known ? over_cells_chart(plot, cells, figures, std::move(chart)) : chart;
}

}  // namespace leeway::sim
