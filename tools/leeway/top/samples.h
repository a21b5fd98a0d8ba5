// Parses the metrics that a process with LEEWAY_METRICS returns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leeway::tools::top {

using Labels = std::map<std::string, std::string, std::less<>>;

struct Series {
  Labels labels;
  double value = 0;
};

class Samples {
 public:
  // Parses lines of Prometheus' text format 0.0.4, and skips other lines.
  static Samples parse(std::string_view text);

  const std::vector<Series>& of(std::string_view name) const;
  // Returns the value of a series that has these labels, and perhaps others.
  std::optional<double> value(std::string_view name, const Labels& labels) const;
  bool empty() const { return by_name_.empty(); }

 private:
  std::map<std::string, std::vector<Series>, std::less<>> by_name_;
};

}  // namespace leeway::tools::top
