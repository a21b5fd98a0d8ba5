// A probability as a multiple of 2^-63. So 0 and 1 are exact, and comparing it with 63 random bits
// needs no floating point.
#pragma once

#include <cstdint>

#include "base/contracts.h"
#include "engine/fixed_point.h"

namespace leeway::sim {

class Probability {
 public:
  constexpr Probability() = default;  // never

  static constexpr Probability never() { return {}; }
  static constexpr Probability always() { return Probability(kOneF63); }

  // Returns p, which must be in [0, 1]. Bits of p below 2^-63 are cut off.
  static constexpr Probability of(double p) {
    LEEWAY_ASSERT(p >= 0 && p <= 1);
    return Probability(static_cast<std::uint64_t>(p * 0x1p63));
  }

  // Returns bits / 2^63. `bits` must be in [0, 2^63].
  static constexpr Probability of_f63(std::uint64_t bits) {
    LEEWAY_ASSERT(bits <= kOneF63);
    return Probability(bits);
  }

  constexpr std::uint64_t f63() const { return f63_; }
  constexpr Probability complement() const { return Probability(kOneF63 - f63_); }
  friend constexpr bool operator==(Probability, Probability) = default;

 private:
  constexpr explicit Probability(std::uint64_t f63) : f63_(f63) {}
  std::uint64_t f63_ = 0;
};

}  // namespace leeway::sim
