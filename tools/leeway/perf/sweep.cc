#include "perf/sweep.h"

#include <charconv>
#include <limits>

namespace leeway::tools::perf {
namespace {

// Returns the shift for a binary suffix such as "K" or "MiB", or -1 for an unknown suffix.
int suffix_shift(std::string_view suffix) {
  if (suffix.empty()) return 0;
  const std::string_view unit = suffix.substr(1);
  if (!unit.empty() && unit != "B" && unit != "iB") return -1;
  switch (suffix.front()) {
    case 'k':
    case 'K':
      return 10;
    case 'm':
    case 'M':
      return 20;
    case 'g':
    case 'G':
      return 30;
    case 'B':
      return unit.empty() ? 0 : -1;
    default:
      return -1;
  }
}

}  // namespace

Result<std::size_t> parse_bytes(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  const int shift = suffix_shift(suffix);
  if (error != std::errc() || shift < 0 ||
      number > (std::numeric_limits<std::size_t>::max() >> shift)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "'%.*s' is not a size such as 4096, 4K or 16M",
                         static_cast<int>(text.size()), text.data());
  }
  return number << shift;
}

Result<std::vector<std::size_t>> sweep(std::size_t bytes_min, std::size_t bytes_max,
                                       std::size_t factor) {
  if (bytes_min == 0 || bytes_min > bytes_max || factor < 2) {
    return Status::error(
        StatusCode::kInvalidArgument,
        "sizes need 1 <= min <= max and factor >= 2, not min %zu, max %zu, factor %zu", bytes_min,
        bytes_max, factor);
  }
  std::vector<std::size_t> sizes{bytes_min};
  while (sizes.back() <= bytes_max / factor) sizes.push_back(sizes.back() * factor);
  return sizes;
}

}  // namespace leeway::tools::perf
