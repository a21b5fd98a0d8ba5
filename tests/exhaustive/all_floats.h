// Divides all floats among all processors. Represents the nearest code of each float as a
// staircase: codes rise with magnitudes, so a walk over rising floats compares each one only with
// the next step.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace leeway::codec {

inline constexpr std::uint32_t kMagnitudes = 0x80000000;

inline float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// ---- nearest, as steps of a stair ----

// steps[c] is the smallest magnitude, as float bits, whose code is above c.
using Steps = std::vector<std::uint32_t>;

// Returns the step at `middle`, the midpoint of two codes. A tie goes to the even code: up from an
// odd code, and down from an even one.
inline std::uint32_t step_at(double middle, bool tie_goes_up) {
  auto at =
      static_cast<float>(middle);  // every midpoint used here is a float, but for bfloat16's first
  if (static_cast<double>(at) < middle || (static_cast<double>(at) == middle && !tie_goes_up)) {
    at = std::nextafter(at, std::numeric_limits<float>::infinity());
  }
  return std::bit_cast<std::uint32_t>(at);
}

inline Steps steps_between(const std::vector<double>& magnitudes) {
  Steps steps;
  for (std::size_t code = 0; code + 1 < magnitudes.size(); ++code) {
    steps.push_back(step_at((magnitudes[code] + magnitudes[code + 1]) / 2, code % 2 == 1));
  }
  return steps;
}

// ---- all floats, on all processors ----

// Calls check(begin, end) on disjoint ranges of magnitude bits that cover 0 .. past, one range for
// each processor. Returns the sum of the results.
template <typename Check>
std::uint64_t sum_over_magnitudes(Check check, std::uint32_t past = kMagnitudes) {
  const std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::uint64_t> wrong(threads);
  std::vector<std::thread> workers;
  for (std::uint32_t t = 0; t < threads; ++t) {
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{past} * t / threads);
    const auto end = static_cast<std::uint32_t>(std::uint64_t{past} * (t + 1) / threads);
    workers.emplace_back([&wrong, check, t, begin, end] { wrong[t] = check(begin, end); });
  }
  for (std::thread& worker : workers) worker.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t count : wrong) sum += count;
  return sum;
}

}  // namespace leeway::codec
