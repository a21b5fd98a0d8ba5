// Standard normal numbers by address: element i of the field (seed, rank, round) depends on these
// four only. Faster than engine/variates.h for many numbers at once.
//
// Marsaglia and Tsang's ziggurat (2000) on Philox. A layer has 24 bits of magnitude, so values are
// at most 2e-7 apart. Tails reach beyond 8. Values are equal on every machine, because they come
// from integers, elementary.h, and single-precision products.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace leeway::sim {

class NormalField {
 public:
  // Round numbers from here on are for values that a rank draws once per run.
  static constexpr std::uint32_t kFirstConstant = 0xFFFFFF00;

  NormalField(std::uint64_t seed, std::uint32_t rank, std::uint32_t round)
      : key_(philox_key(seed)), rank_(rank), round_(round) {}

  float at(std::size_t element) const;

  // Adds deviation * element i to out[i], for every i.
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
