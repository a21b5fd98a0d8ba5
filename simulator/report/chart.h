// The data of one picture, which page.js draws with Chart.js.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leeway::sim {

struct Axis {
  std::string title;  // with unit
  bool log = false;
  bool swept = false;                   // x takes the values of a swept field only
  std::vector<std::string> categories;  // names at the positions 0, 1, ... of x, if there are any
};

// Colour and dash pattern of a curve, counted from 0. The page has eight colours and four patterns;
// pattern 0 is a solid line.
struct Stroke {
  std::size_t color = 0;
  std::size_t dash = 0;
};

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> error;                    // standard errors of y, NaN where unknown; or empty
  std::optional<Stroke> stroke = std::nullopt;  // default: by its place among the series
};

// A horizontal line across the picture.
struct Mark {
  double y = 0;
  std::string label;
};

struct Chart {
  enum class Kind {
    lines,     // points joined, with error bars, or a band where they are many
    points,    // not joined
    bars,      // upright, beside each other, by category
    ranking,   // lying, stacked, by category
    histogram  // x are the bins' edges, y their counts; the last y is 0
  };
  Kind kind = Kind::lines;
  std::string title;
  std::string note;  // text below the picture: what was left out or put together
  std::string by;    // title of the legend
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Mark> marks;
};

// Returns JSON for a <script type="application/json"> element. It has no "<" in it, and numbers
// have six significant digits.
std::string charts_json(std::span<const Chart> charts);

}  // namespace leeway::sim
