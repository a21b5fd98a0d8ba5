// Points in time as the core sees them: nanoseconds of some monotonic clock that only the caller
// reads.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "leeway/types.h"

namespace leeway {

// A point on the caller's monotonic clock. Only differences have meaning. The value is signed, so
// that "before the start" exists.
struct Instant {
  std::int64_t ns = 0;

  // clang-tidy 14 reads the generated comparison with 0 as one with a null pointer.
  friend constexpr auto operator<=>(Instant, Instant) = default;  // NOLINT(modernize-use-nullptr)
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.ns + d.count()}; }
  friend constexpr Instant operator-(Instant t, Duration d) { return {t.ns - d.count()}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return Duration(a.ns - b.ns); }
  Instant& operator+=(Duration d) {
    ns += d.count();
    return *this;
  }
  static constexpr Instant infinite_future() { return {INT64_MAX / 2}; }
};

constexpr double to_seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

}  // namespace leeway
