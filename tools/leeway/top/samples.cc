#include "top/samples.h"

#include <algorithm>
#include <cstdlib>

namespace leeway::tools::top {
namespace {

// Parses labels. `rest` begins behind the opening brace; on return it begins behind the closing
// one. Returns false if the text is broken.
bool parse_labels(std::string_view& rest, Labels& labels) {
  while (!rest.empty() && rest.front() != '}') {
    if (rest.front() == ',') rest.remove_prefix(1);
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) return false;
    std::string& value = labels[std::string(rest.substr(0, equals))];
    rest.remove_prefix(equals + 2);
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() > 1) {
        rest.remove_prefix(1);
        value += rest.front() == 'n' ? '\n' : rest.front();
      } else {
        value += rest.front();
      }
      rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

Samples Samples::parse(std::string_view text) {
  Samples samples;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t end = line.find_first_of("{ ");
    if (end == std::string_view::npos) continue;
    const std::string name(line.substr(0, end));
    Series series;
    const bool labelled = line[end] == '{';
    line.remove_prefix(end + 1);
    if (labelled && !parse_labels(line, series.labels)) continue;
    const std::string number(line);
    char* stop = nullptr;
    series.value = std::strtod(number.c_str(), &stop);
    if (stop == number.c_str()) continue;
    samples.by_name_[name].push_back(std::move(series));
  }
  return samples;
}

const std::vector<Series>& Samples::of(std::string_view name) const {
  static const std::vector<Series> none;
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? none : found->second;
}

std::optional<double> Samples::value(std::string_view name, const Labels& labels) const {
  for (const Series& series : of(name)) {
    const bool all = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
      const auto found = series.labels.find(label.first);
      return found != series.labels.end() && found->second == label.second;
    });
    if (all) return series.value;
  }
  return std::nullopt;
}

}  // namespace leeway::tools::top
