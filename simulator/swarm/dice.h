// Draws the choices, odds and decimals of random scenarios. Decimals are whole thousandths, so they
// print exactly.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "engine/random_stream.h"

namespace leeway::sim::swarm {

class Dice {
 public:
  // For one seed, each `part` gives a sequence of draws of its own. So draws that are added under a
  // new part do not change the draws that exist already.
  explicit Dice(std::uint64_t seed, std::uint64_t part = 0) : random_(seed, part, Purpose::swarm) {}

  bool one_in(std::uint32_t n) { return random_.below(n) == 0; }

  // Both ends are possible.
  std::uint32_t between(std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(random_.below(to - from + 1u));
  }

  // Draws small numbers as often as large ones. It first draws an octave (a range of a factor of
  // two), all equally likely, and then a number in the octave. Requires 0 < from <= to.
  std::uint32_t magnitude(std::uint32_t from, std::uint32_t to) {
    std::uint32_t octaves = 0;
    while (from << octaves <= to / 2) ++octaves;
    const std::uint32_t least = from << between(0, octaves);
    return between(least, least <= to / 2 ? 2 * least - 1 : to);
  }

  // Draws a whole number of thousandths, and returns it as a decimal.
  double decimal(std::uint32_t from_thousandths, std::uint32_t to_thousandths) {
    return between(from_thousandths, to_thousandths) / 1000.0;
  }
  double decimal_magnitude(std::uint32_t from_thousandths, std::uint32_t to_thousandths) {
    return magnitude(from_thousandths, to_thousandths) / 1000.0;
  }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[random_.below(choices.size())];
  }

 private:
  RandomStream random_;
};

}  // namespace leeway::sim::swarm
