// Converts a scenario's units to those of a run: milliseconds to nanoseconds, megabits to bits per
// second. Values are not negative, and are rounded to the nearest whole number, halves up.
#pragma once

#include <cstdint>

namespace leeway::sim {

constexpr std::int64_t ns_of_ms(double ms) {
  return static_cast<std::int64_t>(ms * 1e6 + 0.5);
}

constexpr std::uint64_t bps_of_mbps(double mbps) {
  return static_cast<std::uint64_t>(mbps * 1e6 + 0.5);
}

}  // namespace leeway::sim
