#include "report/label.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "report/number_text.h"

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
    Known{"failed_calls", "Failed calls", ""},
    Known{"error.nmse", "Error of the result (NMSE)", ""},
    Known{"error.mean_square", "Error of the result (mean square)", ""},
    Known{"jain", "Fairness (Jain index)", ""},
    Known{"step_ms", "Time of a step, computing included", "ms"},
    Known{"bytes_per_round", "Sent per round", "bytes"},
    Known{"contributors", "Contributions in a result", ""},
    Known{"age", "Age of replicas", "steps"},
    Known{"drift.pair", "Drift of two replicas (mean square), measured", ""},
    Known{"drift.pair_predicted", "Drift of two replicas (mean square), predicted from the steps",
          ""},
    Known{"drift.pair_predicted_gap", "Drift of two replicas (mean square), predicted from the gap",
          ""},
    Known{"drift.differ", "Pairs that differ, measured", "%", 100},
    Known{"drift.differ_predicted", "Pairs that differ, predicted", "%", 100},
    Known{"workload.distance_to_optimum", "Distance to the optimum", ""},
    Known{"workload.objective_gap", "Objective above its optimum", ""},
    Known{"workload.perplexity", "Validation perplexity", ""},
    Known{"compute.drop_rate", "Micro-batches dropped, measured", "%", 100},
    Known{"compute.drop_rate_predicted", "Micro-batches dropped, predicted", "%", 100},
    Known{"compute.speedup", "Speed-up, measured", ""},
    Known{"compute.speedup_predicted", "Speed-up, predicted", ""},
    Known{"compute.speedup_best_predicted", "Speed-up, predicted at best", ""},
    Known{"compute.speedup_searched", "Speed-up, expected by the search", ""},
    Known{"compute.threshold_ms", "Compute threshold, in force", "ms"},
    Known{"compute.threshold_ms_best_predicted", "Compute threshold, predicted", "ms"},
    Known{"compute.samples_per_s", "Micro-batches completed", "1/s"},
    Known{"compute.step_ms", "Time of a step", "ms"},
    Known{"compute.overhead_ms", "Part of a step that is no computing", "ms"},
};

// Labels of fields. An entry fits every field whose path ends with its name.
constexpr std::array kFields = {
    Known{"ranks", "Ranks", ""},
    Known{"endpoint", "Transport", ""},
    Known{"operation.kind", "Operation", ""},
    Known{"operation.bytes", "Tensor", "bytes"},
    Known{"operation.estimator", "Estimator", ""},
    Known{"operation.codec", "Codec", ""},
    Known{"operation.delivery", "Delivery", ""},
    Known{"operation.delivery.kind", "Delivery", ""},
    Known{"operation.window_bytes", "Credit window", "KiB", 1.0 / 1024},
    Known{"loss.random.p", "Packet loss", "%", 100},
    Known{"loss.bursts.p", "Packet loss in bursts", "%", 100},
    Known{"queue.bytes", "Queue", "KiB", 1.0 / 1024},
    Known{"rate_mbps", "Rate", "Mb/s"},
    Known{"drop_compute.threshold_ms", "Compute threshold", "ms"},
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

// Returns the unit that the last path component with a unit has: milliseconds for
// "delay_ms.normal.mean".
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

// Turns "kind: best_effort deadline_ms: 2000" into "best effort, deadline ms 2000".
std::string spoken_message(std::string_view text) {
  std::string spoken;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string word(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
    const bool names = word.ends_with(':');
    if (names) word.pop_back();
    if (word.empty() || word == "{" || word == "}" || word == "kind") continue;
    std::replace(word.begin(), word.end(), '_', ' ');
    if (!spoken.empty()) spoken += names ? ", " : " ";
    spoken += word;
  }
  return spoken;
}

// Turns "drift.pair_mean_ms" into "Drift: pair mean".
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

constexpr std::string_view kComma = ", ";

// Returns the longest beginning, up to a comma, that all texts share. In each text something must
// follow this beginning.
std::string shared_begin(const std::vector<Label>& labels) {
  const std::string& first = labels.front().text;
  for (std::size_t comma = first.rfind(kComma); comma != std::string::npos && comma > 0;
       comma = first.rfind(kComma, comma - 1)) {
    const std::string begin = first.substr(0, comma + kComma.size());
    const bool shared = std::all_of(labels.begin(), labels.end(), [&](const Label& label) {
      return label.text.starts_with(begin);
    });
    if (shared) return begin;
  }
  return {};
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
  for (const Known& known : kFields) {
    if (path == known.name) return from(known);
    if (!path.ends_with(known.name) || path[path.size() - known.name.size() - 1] != '.') continue;
    Label label = from(known);
    if (path.starts_with("link["))
      label.text += " on " + std::string(path.substr(0, path.find('.')));
    return label;
  }
  return {std::string(path), std::string(unit_of_path(path)), 1};
}

Label label_of(const scenario::Setting& setting) {
  Label label = label_of_field(setting.field);
  if (!setting.title.empty()) label.text = setting.title;
  return label;
}

std::string name_of(const scenario::Setting& setting) {
  if (!setting.name.empty()) return setting.name;
  const std::optional<double> number = number_of(setting.value);
  if (!number) {
    const bool message = setting.value.find(": ") != std::string::npos;
    return message ? spoken_message(setting.value) : setting.value;
  }
  const Label label = label_of_field(setting.field);
  const std::string text = short_text(*number * label.factor);
  return label.unit.empty() ? text : text + " " + label.unit;
}

std::string title_of(const Label& label) {
  if (label.text.empty()) return label.unit;
  return label.unit.empty() ? label.text : label.text + " (" + label.unit + ")";
}

SharedLabel share_axis(const std::vector<Label>& labels) {
  if (labels.size() == 1) return {title_of(labels.front()), {""}};
  const bool one_unit = std::all_of(labels.begin(), labels.end(), [&](const Label& label) {
    return label.unit == labels.front().unit;
  });
  const std::string begin = shared_begin(labels);
  const std::string text = begin.empty() ? begin : begin.substr(0, begin.size() - kComma.size());
  SharedLabel shared{title_of({text, one_unit ? labels.front().unit : std::string()}), {}};
  for (const Label& label : labels) {
    const std::string rest = label.text.substr(begin.size());
    shared.curves.push_back(one_unit ? rest : title_of({rest, label.unit}));
  }
  return shared;
}

}  // namespace leeway::sim
