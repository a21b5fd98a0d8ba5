// Chooses the elements of a sparse group that travel. Probabilities p_i = min(1, lambda |x_i|)
// total `kept`: the unbiased choice of least variance (arXiv 2203.10991). A systematic sample keeps
// element i with exactly that probability. It keeps exactly `kept` elements of a group with at
// least that many nonzeros.
//
// Probabilities are integers in units of 2^-24, which a uniform word of 24 bits draws exactly. So
// x_i / p_i, with the integer as p_i, has the expectation x_i whatever the solver's error.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace leeway::codec {

inline constexpr int kSamplingBits = 24;
inline constexpr std::uint32_t kCertain = 1u << kSamplingBits;  // probability 1

namespace internal {

// Elements of a group that share the remaining slots in proportion to their magnitudes.
template <std::size_t kGroup>
struct Sharing {
  std::array<double, kGroup> magnitude;  // 0 for zeros, and for elements of probability 1
  std::uint32_t nonzero = 0;
  std::uint32_t slots = 0;
  double total = 0;
};

template <std::size_t kGroup>
Sharing<kGroup> sharing_of(const std::array<float, kGroup>& group, std::uint32_t kept) {
  Sharing<kGroup> sharing;
  sharing.slots = kept;
  for (std::size_t i = 0; i < kGroup; ++i) {
    sharing.magnitude[i] = std::fabs(static_cast<double>(group[i]));
    sharing.nonzero += group[i] != 0.0f;
  }
  return sharing;
}

// Gives probability 1 to the elements that a proportional share would lift above it, takes them
// out, and repeats until there are none. At least one slot is left: otherwise as many elements as
// slots, each above total / slots, would add up to more than the total. This holds in rounded
// arithmetic, too, since adding rounds monotonically.
template <std::size_t kGroup>
void take_certain(Sharing<kGroup>& sharing, std::array<std::uint32_t, kGroup>& units) {
  std::uint32_t found = 0;
  do {
    sharing.total = 0;
    for (const double magnitude : sharing.magnitude) sharing.total += magnitude;
    found = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const bool above = sharing.magnitude[i] * sharing.slots > sharing.total;
      units[i] = above ? kCertain : units[i];
      sharing.magnitude[i] = above ? 0.0 : sharing.magnitude[i];
      found += above;
    }
    sharing.slots -= found;
    sharing.nonzero -= found;
  } while (found != 0);
}

// Gives one unit to every nonzero element, so that each may be sent. The other units are in
// proportion, as differences of the rounded running total, so that all add up to slots * 2^24. No
// element gets more than 2^24: its magnitude is at most total / slots, and the units given first,
// more than `slots`, are taken off `common`. Rounding cannot make up for that.
template <std::size_t kGroup>
void share(const Sharing<kGroup>& sharing, std::array<std::uint32_t, kGroup>& units) {
  const std::uint32_t common = (sharing.slots << kSamplingBits) - sharing.nonzero;
  const double per_magnitude = common / sharing.total;
  double running = 0;
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    running += sharing.magnitude[i];
    const auto part =
        static_cast<std::uint32_t>(static_cast<std::int64_t>(running * per_magnitude));
    const std::uint32_t until = running == sharing.total ? common : part;
    units[i] += until - before + (sharing.magnitude[i] != 0.0 ? 1 : 0);
    before = until;
  }
}

}  // namespace internal

// Probabilities of a group of finite elements; they total min(kept, nonzero elements) * 2^24, and
// are 0 only for zeros. 1 <= kept < kGroup <= 256. Needs IEEE arithmetic (float_mode.h).
template <std::size_t kGroup>
std::array<std::uint32_t, kGroup> inclusion_units(const std::array<float, kGroup>& group,
                                                  std::uint32_t kept) {
  std::array<std::uint32_t, kGroup> units{};
  internal::Sharing<kGroup> sharing = internal::sharing_of(group, kept);
  if (sharing.nonzero <= kept) {
    for (std::size_t i = 0; i < kGroup; ++i) units[i] = group[i] != 0.0f ? kCertain : 0;
    return units;
  }
  internal::take_certain(sharing, units);
  internal::share(sharing, units);
  return units;
}

// Systematic sampling: the running total of probabilities, started at a uniform offset, keeps the
// element on which it passes an integer. At first `running` is the offset, 24 uniform bits. It is
// at most 2^32 - 1 after a group, since kept <= 255.
inline bool passes_integer(std::uint32_t& running, std::uint32_t units) {
  const std::uint32_t before = running;
  running += units;
  return (before ^ running) >> kSamplingBits != 0;
}

}  // namespace leeway::codec
