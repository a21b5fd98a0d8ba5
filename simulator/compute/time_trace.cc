#include "compute/time_trace.h"

#include <charconv>
#include <fstream>
#include <iterator>

#include "compute/scaled_time.h"

namespace leeway::sim {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

bool parse_ms(std::string_view text, double& ms) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), ms);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && ms >= 0 &&
         ms <= kTraceMsMax;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_time_trace(std::string_view text,
                                                   const std::string& file_name) {
  std::vector<std::int64_t> times_ns;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    double ms = 0;
    if (!parse_ms(line, ms)) {
      return Status::error(StatusCode::kInvalidArgument,
                           "%s:%zu: \"%.*s\" is no time; allowed are milliseconds, 0 to 1e9",
                           file_name.c_str(), line_number,
                           static_cast<int>(std::min<std::size_t>(line.size(), 40)), line.data());
    }
    times_ns.push_back(ns_of_ms(ms));
  }
  if (times_ns.empty()) {
    return Status::error(StatusCode::kInvalidArgument, "%s holds no times", file_name.c_str());
  }
  return times_ns;
}

Result<std::vector<std::int64_t>> read_time_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Status::error(StatusCode::kUnavailable, "%s cannot be read", path.c_str());
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return parse_time_trace(text, path);
}

}  // namespace leeway::sim
