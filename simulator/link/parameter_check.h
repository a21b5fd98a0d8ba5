// Range checks for the settings of links. An error names the parameter, its value and its range.
#pragma once

#include <cinttypes>
#include <cstdint>

#include "leeway/status.h"

namespace leeway::sim {

inline Status check_probability(const char* name, double value) {
  if (value >= 0.0 && value <= 1.0) return {};  // NaN fails, too
  return Status::error(StatusCode::kInvalidArgument, "%s=%g: a probability lies between 0 and 1",
                       name, value);
}

inline Status check_range(const char* name, std::int64_t value, std::int64_t from,
                          std::int64_t to) {
  if (value >= from && value <= to) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "%s=%" PRId64 ": expected %" PRId64 " to %" PRId64, name, value, from, to);
}

inline Status check_count(const char* name, std::uint64_t value, std::uint64_t from,
                          std::uint64_t to) {
  if (value >= from && value <= to) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "%s=%" PRIu64 ": expected %" PRIu64 " to %" PRIu64, name, value, from, to);
}

// Returns the first error of two checks.
inline Status both(Status first, Status second) {
  return first.ok() ? second : first;
}

}  // namespace leeway::sim
