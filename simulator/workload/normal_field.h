// Standard normal numbers by address: element i of the field (seed, rank, round) is a function of
// these four and nothing else. Made for many at once, where engine/variates.h makes one.
//
// Marsaglia and Tsang's ziggurat (2000) on Philox: 24 bits of magnitude within a layer, so values
// are multiples of at most 2e-7; tails reach beyond 8. Equal on every machine: integers, exp and
// log of elementary.h, and single-precision products.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace leeway::sim {

class NormalField {
 public:
  // Rounds from kFirstConstant on are for values that a rank draws only once, and not once a round.
  static constexpr std::uint32_t kFirstConstant = 0xFFFFFF00;

  NormalField(std::uint64_t seed, std::uint32_t rank, std::uint32_t round)
      : key_(philox_key(seed)), rank_(rank), round_(round) {}

  float at(std::size_t element) const;

  // out[i] = offset[i] + deviation * element i, where offset is out itself.
  void add_to(std::span<float> out, float deviation) const;

 private:
  static constexpr std::size_t kBatch = 64;

  void words_of_batch(std::uint64_t first_block, std::array<std::uint32_t, kBatch>& out) const;
  PhiloxCounter words_of_block(std::uint64_t block) const;
  float rare(std::size_t element, std::uint32_t word) const;

  PhiloxKey key_;
  std::uint32_t rank_;
  std::uint32_t round_;
};

}  // namespace leeway::sim
