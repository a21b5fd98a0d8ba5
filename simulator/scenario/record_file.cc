#include "scenario/record_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/read_number.h"
#include "scenario/field_limits.h"
#include "scenario/places.h"
#include "scenario/units.h"

namespace leeway::sim::scenario {
namespace {

using Handle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Status refuse_file(const std::string& path, const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument, "%s: %s", short_file_name(path).c_str(),
                       why.c_str());
}

Result<std::string> read_all(const std::string& path) {
  const Handle file(std::fopen(path.c_str(), "rb"), &std::fclose);
  std::string text;
  std::array<char, 1 << 16> block;
  while (file != nullptr && text.size() <= kRecordBytesMax) {
    const std::size_t bytes = std::fread(block.data(), 1, block.size(), file.get());
    if (bytes == 0) break;
    text.append(block.data(), bytes);
  }
  if (file == nullptr || std::ferror(file.get()) != 0) {
    return Status::error(StatusCode::kUnavailable, "%s: cannot be read: %s",
                         short_file_name(path).c_str(),
                         std::generic_category().message(errno).c_str());
  }
  if (text.size() > kRecordBytesMax) {
    return refuse_file(path, "more than " + std::to_string(kRecordBytesMax) + " bytes");
  }
  return text;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Reads one number >= 0. Returns false for any other text.
bool parse_ms(std::string_view text, double& ms) {
  return read_number(text, ms) && ms >= 0;
}

}  // namespace

Result<std::vector<std::int64_t>> read_times_ns(const std::string& path, TimeRules rules) {
  const Result<std::string> text = read_all(path);
  if (!text.ok()) return text.status();
  std::vector<std::int64_t> values;
  std::string_view rest = *text;
  for (std::size_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view item = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (item.empty() || (rules.comments && item.front() == '#')) continue;
    double ms = 0;
    if (!parse_ms(item, ms) || ms > rules.ms_max) {
      return refuse_file(path, "line " + std::to_string(line) + ": \"" +
                                   std::string(item.substr(0, 40)) +
                                   "\" is no number of ms from 0 to " + number_text(rules.ms_max));
    }
    values.push_back(ns_of_ms(ms));
  }
  if (values.empty()) return refuse_file(path, "holds no number");
  if (values.size() > rules.count_max) {
    return refuse_file(path, "more than " + std::to_string(rules.count_max) + " numbers");
  }
  return values;
}

Result<std::vector<bool>> read_fates(const std::string& path) {
  const Result<std::string> text = read_all(path);
  if (!text.ok()) return text.status();
  std::vector<bool> lost;
  for (const char c : *text) {
    if (is_space(c)) continue;
    if (c != '0' && c != '1') return refuse_file(path, "holds something else than 0 and 1");
    lost.push_back(c == '1');
  }
  if (lost.empty()) return refuse_file(path, "holds no 0 and no 1");
  return lost;
}

}  // namespace leeway::sim::scenario
