// Labels for people in place of the names of measures and fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario/sweep.h"

namespace leeway::sim {

struct Label {
  // Text such as "Round time, p99". For a field without such a text, the field's path.
  std::string text;
  std::string unit;   // "ms"; empty for plain numbers
  double factor = 1;  // factor from the measure to its unit here: 100 for percent
};

// The labels of several curves in one picture: "Round time (ms)" at the axis, "median" and "p99" in
// the legend.
struct SharedLabel {
  std::string axis;  // common beginning of all texts, and the unit, where there are such
  std::vector<std::string> curves;
};

Label label_of_measure(std::string_view name);
Label label_of_field(std::string_view path);
// Returns the field's label. A title that the scenario gives comes first.
Label label_of(const scenario::Setting& setting);
// Returns the setting's value as the name of a curve or row: "5 %", "best effort, 2 s deadline".
std::string name_of(const scenario::Setting& setting);

// Returns "Round time, p99 (ms)", or only the unit if there is no text.
std::string title_of(const Label& label);

// Moves the part that all labels share to the axis. A single label goes to the axis as a whole, and
// its curve has no name.
SharedLabel share_axis(const std::vector<Label>& labels);

}  // namespace leeway::sim
