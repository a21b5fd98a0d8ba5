// What people read instead of a measure's or a field's name.
#pragma once

#include <string>
#include <string_view>

namespace leeway::sim {

struct Label {
  std::string text;   // "Round time, p99"; a field's path is left as it is
  std::string unit;   // "ms"; empty for plain numbers
  double factor = 1;  // from the measure to its unit here: 100 for percent
};

Label label_of_measure(std::string_view name);
Label label_of_field(std::string_view path);

// "Round time, p99 (ms)"
std::string title_of(const Label& label);

}  // namespace leeway::sim
