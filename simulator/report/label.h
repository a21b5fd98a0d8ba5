// Texts for people that stand for a measure's or a field's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario/sweep.h"

namespace leeway::sim {

struct Label {
  // Text such as "Round time, p99", or the path of a field that has no text here.
  std::string text;
  std::string unit;   // "ms"; empty for plain numbers
  double factor = 1;  // factor from the measure to its unit here: 100 for percent
};

// Several curves in the same axes: "Round time (ms)" with "median" and "p99" in the legend.
struct SharedLabel {
  std::string axis;  // common beginning of all texts, and the unit, where there are such
  std::vector<std::string> curves;
};

Label label_of_measure(std::string_view name);
Label label_of_field(std::string_view path);
// Returns the field's label, in the words of the scenario where it has some.
Label label_of(const scenario::Setting& setting);
// Returns the name of a curve or a row of this value: "5 %", "best effort, 2 s deadline".
std::string name_of(const scenario::Setting& setting);

// Returns "Round time, p99 (ms)", or only the unit if there is no text.
std::string title_of(const Label& label);

// The labels that several curves share on an axis. A single label is the axis' own, and its curve
// has no name.
SharedLabel share_axis(const std::vector<Label>& labels);

}  // namespace leeway::sim
