// Which elements of a sparse group travel: probabilities p_i = min(1, lambda |x_i|) that total `kept`, the
// unbiased choice of least variance (arXiv 2203.10991), and a systematic sample that keeps element i with
// exactly that probability and exactly `kept` elements of a group that has so many nonzeros.
//
// Probabilities are integers in units of 2^-24, so that a uniform word of 24 bits has their exact measure:
// x_i / p_i with the integer used has the expectation x_i without any error of the solver.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace leeway::codec {

inline constexpr int kSamplingBits = 24;
inline constexpr std::uint32_t kCertain = 1u << kSamplingBits;  // probability 1

namespace internal {

// Gives probability 1 to elements that lambda would lift above it and removes them from `open`, until none
// is left: what remains shares the remaining slots in proportion. Returns the number removed, which is
// below `slots`: `slots` elements above total / slots would add up to more than the total, also in rounded
// arithmetic, since adding rounds monotonically.
template <std::size_t kGroup>
std::uint32_t take_certain(std::array<double, kGroup>& open, std::uint32_t slots,
                           std::array<std::uint32_t, kGroup>& units) {
  std::uint32_t taken = 0;
  while (true) {
    double total = 0;
    for (const double magnitude : open) total += magnitude;
    const double left = slots - taken;
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const bool above = open[i] * left > total;
      units[i] = above ? kCertain : units[i];
      open[i] = above ? 0.0 : open[i];
      found += above;
    }
    if (found == 0) return taken;
    taken += found;
  }
}

// One unit for every nonzero element, so that none is never sent, and the other units in proportion, as
// differences of the rounded running total, so that they sum to slots * 2^24. No element gets more than
// 2^24: open[i] <= total / slots, and more than `slots` elements gave a unit to the common ones.
template <std::size_t kGroup>
void share(const std::array<double, kGroup>& open, std::uint32_t slots, std::uint32_t nonzero,
           std::array<std::uint32_t, kGroup>& units) {
  double total = 0;
  for (const double magnitude : open) total += magnitude;
  const std::uint32_t common = (slots << kSamplingBits) - nonzero;
  const double per_magnitude = common / total;
  double running = 0;
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    running += open[i];
    const auto part = static_cast<std::uint32_t>(static_cast<std::int64_t>(running * per_magnitude));
    const std::uint32_t until = running == total ? common : part;
    units[i] += until - before + (open[i] != 0.0 ? 1 : 0);
    before = until;
  }
}

}  // namespace internal

// Probabilities of a group of finite elements; they total min(kept, nonzero elements) * 2^24, and are 0 for
// zeros alone. 1 <= kept < kGroup <= 256. Needs IEEE arithmetic (float_mode.h).
template <std::size_t kGroup>
std::array<std::uint32_t, kGroup> inclusion_units(const std::array<float, kGroup>& group,
                                                  std::uint32_t kept) {
  std::array<double, kGroup> open;  // magnitudes of what is not yet certain
  std::array<std::uint32_t, kGroup> units{};
  std::uint32_t nonzero = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    open[i] = std::fabs(static_cast<double>(group[i]));
    nonzero += open[i] != 0.0;
  }
  if (nonzero <= kept) {
    for (std::size_t i = 0; i < kGroup; ++i) units[i] = open[i] != 0.0 ? kCertain : 0;
    return units;
  }
  const std::uint32_t certain = internal::take_certain(open, kept, units);
  internal::share(open, kept - certain, nonzero - certain, units);
  return units;
}

// Systematic sampling: the running total of probabilities, started at a uniform offset, keeps the element on
// which it passes an integer. `running` is the offset, 24 uniform bits, at first. At most 2^32 - 1 after a
// group, since kept <= 255.
inline bool passes_integer(std::uint32_t& running, std::uint32_t units) {
  const std::uint32_t before = running;
  running += units;
  return (before ^ running) >> kSamplingBits != 0;
}

}  // namespace leeway::codec
