#include "report/label.h"

#include <array>
#include <cctype>

namespace leeway::sim {
namespace {

struct Known {
  std::string_view name;
  std::string_view text;
  std::string_view unit;
  double factor = 1;
};

constexpr std::array kMeasures = {
    Known{"round_ms", "Round time", "ms"},
    Known{"call_ms", "Call time", "ms"},
    Known{"loss", "Data missing at the end", "%", 100},
    Known{"loss_first_pass", "Data lost on the first pass", "%", 100},
    Known{"goodput_gbps", "Goodput", "Gb/s"},
    Known{"error.nmse", "Error of the result (NMSE)", ""},
    Known{"error.mean_square", "Error of the result (mean square)", ""},
    Known{"jain", "Fairness (Jain index)", ""},
    Known{"step_ms", "Time of a step, computing included", "ms"},
    Known{"bytes_per_round", "Sent per round", "bytes"},
    Known{"contributors", "Contributions in a result", ""},
    Known{"age", "Age of replicas", "steps"},
};

constexpr std::array kUnits = {
    Known{"_ms", "", "ms"},     Known{"_ns", "", "ns"},       Known{"_mbps", "", "Mb/s"},
    Known{"_gbps", "", "Gb/s"}, Known{"_bytes", "", "bytes"},
};

std::string_view unit_of(std::string_view name) {
  if (name == "bytes") return "bytes";
  for (const Known& known : kUnits) {
    if (name.ends_with(known.name)) return known.unit;
  }
  return {};
}

// The unit of the innermost part of a path that has one: "delay_ms.normal.mean" is milliseconds.
std::string_view unit_of_path(std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? path : path.substr(dot + 1);
    const std::string_view unit = unit_of(part);
    if (!unit.empty() || dot == std::string_view::npos) return unit;
    path = path.substr(0, dot);
  }
  return {};
}

// "drift.pair_mean_ms" as "Drift: pair mean".
std::string spoken(std::string_view name) {
  std::string text;
  const std::string_view unit = unit_of(name);
  if (!unit.empty() && name.rfind('_') != std::string_view::npos) {
    name = name.substr(0, name.rfind('_'));
  }
  for (const char c : name) {
    if (c == '.') {
      text += text.find(':') == std::string::npos ? ": " : ", ";
    } else {
      text += c == '_' ? ' ' : c;
    }
  }
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

Label from(const Known& known) {
  return {std::string(known.text), std::string(known.unit), known.factor};
}

}  // namespace

Label label_of_measure(std::string_view name) {
  constexpr std::string_view kPooled = "pooled.";
  if (name.starts_with(kPooled)) {
    Label label = label_of_measure(name.substr(kPooled.size()));
    label.text += " of all seeds' records";
    return label;
  }
  for (const Known& known : kMeasures) {
    if (name == known.name) return from(known);
    if (!name.starts_with(known.name) || name[known.name.size()] != '.') continue;
    Label label = from(known);
    const std::string_view figure = name.substr(known.name.size() + 1);
    label.text += ", " + (figure == "p50" ? std::string("median") : std::string(figure));
    return label;
  }
  return {spoken(name), std::string(unit_of_path(name)), 1};
}

Label label_of_field(std::string_view path) {
  return {std::string(path), std::string(unit_of_path(path)), 1};
}

std::string title_of(const Label& label) {
  return label.unit.empty() ? label.text : label.text + " (" + label.unit + ")";
}

}  // namespace leeway::sim
