// Chooses the elements of a sparse group that travel. Probabilities p_i = min(1, lambda |x_i|)
// total `kept`: the unbiased choice of least variance (arXiv 2203.10991). A systematic sample keeps
// element i with exactly that probability. It keeps exactly `kept` elements of a group with at
// least that many nonzeros.
//
// Probabilities are integers in units of 2^-24, which a uniform word of 24 bits draws exactly. So
// x_i / p_i, with the integer as p_i, has the expectation x_i even if p_i is not quite optimal.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace leeway::codec {

inline constexpr int kSamplingBits = 24;
inline constexpr std::uint32_t kCertain = 1u << kSamplingBits;  // probability 1

namespace internal {

// Elements of a group that share the remaining slots in proportion to their magnitudes. Each
// element that is kept takes one slot.
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

// Gives probability 1 to each element whose proportional share of the slots is above 1, takes it
// out, and repeats until there is no such element. At least one slot is left: if the elements of
// one pass took all slots, their magnitudes would add up to more than the total. Rounding cannot
// change this, as adding rounds monotonically.
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

// Gives one unit to every nonzero element, so that each may be sent, and splits `common`, the other
// units, in proportion. Parts are differences of the rounded running total, so all units add up to
// slots * 2^24. No element gets more than 2^24: its part of `common` is below 2^24 - 1, as its
// magnitude is at most total / slots and more than `slots` units are given first.
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

// Returns the probabilities of a group of finite elements. Their sum is min(kept, nonzero elements)
// * 2^24; only zeros have 0. 1 <= kept < kGroup <= 256. Needs IEEE arithmetic (float_mode.h).
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
// element on which it passes an integer. At first `running` is the offset, 24 uniform bits. After a
// group, `running` is at most 2^32 - 1, since kept <= 255.
inline bool passes_integer(std::uint32_t& running, std::uint32_t units) {
  const std::uint32_t before = running;
  running += units;
  return (before ^ running) >> kSamplingBits != 0;
}

}  // namespace leeway::codec
