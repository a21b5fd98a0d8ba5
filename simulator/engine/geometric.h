// Draws the number of failures before the next success. So a lossy link draws once per lost packet
// instead of once per packet.
//
//   P(distance >= k) = q^k for k = 0, 1, ...; mean q / p. Success has probability p; q = 1 - p.
//
// How: inversion in integers. For 63 uniform bits u the distance is the greatest k with u < q^k. k
// is composed from its highest bit down, with the powers q^(2^j) in 63-bit fractions. Rounding
// changes P(distance >= k) by less than 2^-61. The relative error of the rate p is below 2^-62 / p
// (2e-10 at p = 10^-9).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/fixed_point.h"
#include "engine/probability.h"
#include "engine/random_stream.h"

namespace leeway::sim {

class GeometricDistance {
 public:
  // Result of a draw if the next success is too far away to count. Always the result for p = 0.
  static constexpr std::uint64_t kNever = UINT64_MAX;

  constexpr explicit GeometricDistance(Probability success) {
    std::uint64_t power = success.complement().f63();
    never_ = power == kOneF63;
    for (; count_ < powers_.size() && power != 0 && !never_; ++count_) {
      powers_[count_] = power;
      power = multiply_f63(power, power);
    }
  }

  // Draws the number of failures before the next success. Uses up two 32-bit words of the stream,
  // whatever p is.
  std::uint64_t draw(RandomStream& stream) const { return invert(stream.u64() >> 1); }

  // Returns the greatest k with u / 2^63 < q^k; u is in [0, 2^63).
  constexpr std::uint64_t invert(std::uint64_t u) const {
    if (never_) return kNever;
    std::uint64_t distance = 0;
    std::uint64_t reached = kOneF63;  // q^distance
    for (std::size_t j = count_; j-- > 0;) {
      const std::uint64_t further = multiply_f63(reached, powers_[j]);
      const bool inside = u < further;
      reached = inside ? further : reached;
      distance |= std::uint64_t{inside} << j;
    }
    return distance;
  }

 private:
  std::array<std::uint64_t, 63> powers_{};  // q^(2^j), down to the last power above 0
  std::size_t count_ = 0;
  bool never_ = false;
};

}  // namespace leeway::sim
