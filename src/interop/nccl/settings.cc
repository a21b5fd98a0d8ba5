#include "interop/nccl/settings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/read_number.h"
#include "interop/nccl/codes.h"

namespace leeway::nccl {
namespace {

// NCCL_DEBUG and NCCL_DEBUG_FILE are read by debug.cc.
constexpr std::array<std::string_view, 7> kUnderstood = {
    "NCCL_CHECK_POINTERS", "NCCL_COMM_BLOCKING", "NCCL_COMM_ID",      "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",     "NCCL_SOCKET_FAMILY", "NCCL_SOCKET_IFNAME"};

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  return read_number(text, value) ? std::optional(value) : std::nullopt;
}

Status wrong(const char* name, const char* value, const char* what) {
  return Status::error(StatusCode::kInvalidArgument, "%s=\"%.60s\" is not %s", name, value, what);
}

// Parses "2.29.3", or a number as NCCL_VERSION_CODE.
std::optional<int> version_of(std::string_view text) {
  std::array<int, 3> parts{};
  std::size_t count = 0;
  for (; count < parts.size(); ++count) {
    const std::size_t end = std::min(text.find('.'), text.size());
    const auto part = number_of<int>(text.substr(0, end));
    if (!part || *part < 0) return std::nullopt;
    parts[count] = *part;
    text.remove_prefix(end);
    if (text.empty()) break;
    text.remove_prefix(1);
  }
  if (count == 0 && parts[0] >= version_code(2, 0, 0)) return parts[0];
  if (count == 0 || count == parts.size() || parts[0] != 2) return std::nullopt;
  return version_code(parts[0], parts[1], parts[2]);
}

std::optional<Duration> seconds_of(std::string_view text) {
  const auto value = number_of<double>(text);
  constexpr double kMost = 1e9;
  if (!value || !(*value > 0) || *value > kMost) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*value));
}

// Returns an empty text if the variable is not set.
std::string value_of(const Settings::Lookup& variable, const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? "" : value;
}

Status read_switch(const Settings::Lookup& variable, const char* name, bool& out) {
  const char* const value = variable(name);
  if (value == nullptr || *value == '\0') return Status();
  const auto number = number_of<int>(value);
  if (!number || (*number != 0 && *number != 1)) return wrong(name, value, "0 or 1");
  out = *number == 1;
  return Status();
}

// Refuses LEEWAY_NCCL_* variables that are set but empty, as after `LEEWAY_NCCL_POLICY=$RULES`
// where RULES is misspelt. Empty NCCL_* variables are taken as unset.
Status refuse_empty(const Settings::Lookup& variable) {
  for (const char* const name :
       {"LEEWAY_NCCL_POLICY", "LEEWAY_NCCL_TRACE", "LEEWAY_NCCL_TIMEOUT", "LEEWAY_NCCL_SEAL",
        "LEEWAY_NCCL_STAGING", "LEEWAY_NCCL_SMS", "LEEWAY_NCCL_VERSION"}) {
    const char* const value = variable(name);
    if (value == nullptr || *value != '\0') continue;
    return Status::error(StatusCode::kInvalidArgument,
                         "%s is set and empty; give it a value, or unset it", name);
  }
  return Status();
}

Status read_leeways(const Settings::Lookup& variable, Settings& out) {
  if (const std::string value = value_of(variable, "LEEWAY_NCCL_VERSION"); !value.empty()) {
    const auto version = version_of(value);
    if (!version) return wrong("LEEWAY_NCCL_VERSION", value.c_str(), "a version such as 2.28.9");
    out.version = *version;
  }
  if (const std::string value = value_of(variable, "LEEWAY_NCCL_TIMEOUT"); !value.empty()) {
    const auto timeout = seconds_of(value);
    if (!timeout) return wrong("LEEWAY_NCCL_TIMEOUT", value.c_str(), "a number of seconds above 0");
    out.timeout = *timeout;
  }
  if (const std::string value = value_of(variable, "LEEWAY_NCCL_STAGING"); !value.empty()) {
    constexpr std::size_t kMost = 4096;
    const auto mib = number_of<std::size_t>(value);
    if (!mib || *mib < 1 || *mib > kMost)
      return wrong("LEEWAY_NCCL_STAGING", value.c_str(), "a number of MiB from 1 to 4096");
    out.staging_mib = *mib;
  }
  if (const std::string value = value_of(variable, "LEEWAY_NCCL_SMS"); !value.empty()) {
    constexpr unsigned kMost = 1024;
    const auto number = number_of<unsigned>(value);
    if (!number || *number < 1 || *number > kMost)
      return wrong("LEEWAY_NCCL_SMS", value.c_str(), "a number of multiprocessors from 1 to 1024");
    out.multiprocessors = *number;
  }
  out.join_timeout_given = !value_of(variable, "LEEWAY_JOIN_TIMEOUT_MS").empty();
  out.policy = value_of(variable, "LEEWAY_NCCL_POLICY");
  out.trace = value_of(variable, "LEEWAY_NCCL_TRACE");
  return read_switch(variable, "LEEWAY_NCCL_SEAL", out.seal);
}

Status read_nccls(const Settings::Lookup& variable, Settings& out) {
  out.interfaces = value_of(variable, "NCCL_SOCKET_IFNAME");
  out.meeting_place = value_of(variable, "NCCL_COMM_ID");
  if (const std::string value = value_of(variable, "NCCL_SOCKET_FAMILY"); !value.empty()) {
    if (value != "AF_INET" && value != "AF_INET6")
      return wrong("NCCL_SOCKET_FAMILY", value.c_str(), "AF_INET or AF_INET6");
    out.family = value == "AF_INET" ? Settings::Family::v4 : Settings::Family::v6;
  }
  bool blocking = true;
  Status status = read_switch(variable, "NCCL_COMM_BLOCKING", blocking);
  const char* const said = variable("NCCL_COMM_BLOCKING");
  if (said != nullptr && *said != '\0') out.blocking = blocking;
  if (status.ok()) status = read_switch(variable, "NCCL_CHECK_POINTERS", out.check_pointers);
  return status;
}

}  // namespace

Result<Settings> Settings::read(const Lookup& variable) {
  Settings settings;
  settings.version = kVersion;
  Status status = refuse_empty(variable);
  if (status.ok()) status = read_leeways(variable, settings);
  if (status.ok()) status = read_nccls(variable, settings);
  if (!status.ok()) return status;
  return settings;
}

std::vector<std::string> ignored_variables(const char* const* environment) {
  constexpr std::string_view kPrefix = "NCCL_";
  std::vector<std::string> names;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix)) continue;
    if (std::find(kUnderstood.begin(), kUnderstood.end(), name) != kUnderstood.end()) continue;
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace leeway::nccl
