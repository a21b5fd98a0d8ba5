#include "report/chart.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace leeway::sim {
namespace {

using Json = nlohmann::ordered_json;

// Rounds to six digits, which is finer than any pixel and halves the length of the text.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(unit) && unit > 0 ? std::round(value * unit) / unit : value;
}

Json numbers(const std::vector<double>& values) {
  Json array = Json::array();
  for (const double value : values) {
    const double number = rounded(value);
    if (number == std::floor(number) && std::abs(number) < 1e15) {
      array.push_back(static_cast<std::int64_t>(number));  // "5", not "5.0"
    } else {
      array.push_back(number);
    }
  }
  return array;
}

const char* kind_text(Chart::Kind kind) {
  switch (kind) {
    case Chart::Kind::lines:
      return "lines";
    case Chart::Kind::points:
      return "points";
    case Chart::Kind::bars:
      return "bars";
    case Chart::Kind::ranking:
      return "ranking";
    case Chart::Kind::histogram:
      return "histogram";
  }
  return "?";
}

Json axis_json(const Axis& axis) {
  Json json = {{"title", axis.title}, {"log", axis.log}, {"swept", axis.swept}};
  if (!axis.categories.empty()) json["categories"] = axis.categories;
  return json;
}

Json chart_json(const Chart& chart) {
  Json json = {
      {"kind", kind_text(chart.kind)}, {"title", chart.title},    {"by", chart.by},
      {"x", axis_json(chart.x)},       {"y", axis_json(chart.y)}, {"series", Json::array()},
      {"marks", Json::array()}};
  for (const Series& series : chart.series) {
    Json item = {{"name", series.name}, {"x", numbers(series.x)}, {"y", numbers(series.y)}};
    if (!series.error.empty()) item["error"] = numbers(series.error);
    if (series.stroke)
      item["stroke"] = {{"color", series.stroke->color}, {"dash", series.stroke->dash}};
    json["series"].push_back(std::move(item));
  }
  for (const Mark& mark : chart.marks) {
    json["marks"].push_back({{"y", rounded(mark.y)}, {"label", mark.label}});
  }
  return json;
}

}  // namespace

std::string charts_json(std::span<const Chart> charts) {
  Json json = Json::array();
  for (const Chart& chart : charts) json.push_back(chart_json(chart));
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";  // "<" occurs in strings only
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace leeway::sim
