// The simulator's random numbers: one independent stream for each (seed, entity, purpose).
//
// Promises:
//   - A stream's draws depend only on these three names and on how many were drawn from it. So a
//     new draw in one stream changes no draw of another.
//   - Draws are equal on every compiler and machine: integers only, and no distribution of the
//     standard library. tests/unit/sim_engine has golden values; changing the draws breaks every
//     recorded run.
//   - A copy continues at the same place. A stream repeats after 2^54 words.
//
// Not for keys: this use of Philox is not cryptographic.
#pragma once

#include <cstdint>

#include "base/contracts.h"
#include "base/philox.h"
#include "engine/fixed_point.h"
#include "engine/probability.h"

namespace leeway::sim {

// The decision for which a number is drawn. The values are part of every recorded run, so only add
// new ones at the end, up to 255.
enum class Purpose : std::uint8_t {
  loss = 0,
  delay = 1,
  reorder = 2,
  duplicate = 3,
  corrupt = 4,
  queue = 5,    // early drops and marks
  compute = 6,  // time a rank computes between rounds
  fault = 7,    // crashes, pauses, partitions
  workload = 8,
  swarm = 9,  // the scenario itself, drawn from a seed
  traffic = 10,
  clock = 11,    // skew and jumps
  route = 12,    // choice among several equal paths
  message = 13,  // choice of the messages that ranks send each other
  member = 14,   // when processes join, use and leave further communicators
  spoil = 15,    // infinities and NaNs among contributions
};

class RandomStream {
 public:
  // `entity` is the number of the link, rank or queue among its kind.
  RandomStream(std::uint64_t seed, std::uint64_t entity, Purpose purpose)
      : key_(philox_key(seed)),
        entity_{static_cast<std::uint32_t>(entity), static_cast<std::uint32_t>(entity >> 32)},
        purpose_word_(kSimulatorStream | std::uint32_t{static_cast<std::uint8_t>(purpose)} << 20) {}

  // Draw 32 or 64 uniform bits. 64 bits are two draws, the low half first.
  std::uint32_t u32() {
    if (left_ == 0) refill();
    return words_[kWords - left_--];
  }
  std::uint64_t u64() {
    const std::uint64_t low = u32();
    return low | std::uint64_t{u32()} << 32;
  }

  // Draws uniformly from 0 .. n - 1, n > 0, each value with exactly the same probability. Uses up
  // one 32-bit word for n up to 2^32, else two; rarely more.
  std::uint64_t below(std::uint64_t n);

  // Draws uniformly from [0, 1); every value is a multiple of 2^-53.
  double unit53() { return to_unit(u64()); }

  // Returns true with probability p, exact to 2^-63. Uses up two words for every p, so that
  // changing p changes no later draw.
  bool bernoulli(Probability p) { return u64() >> 1 < p.f63(); }

 private:
  // Stream tag for base/philox.h. It differs from all tags of the library.
  static constexpr std::uint32_t kSimulatorStream = 0xEu << 28;
  static constexpr std::uint32_t kWords = 4;

  void refill() {
    const auto high = static_cast<std::uint32_t>(block_ >> 32);
    LEEWAY_ASSERT(high < 1u << 20);
    words_ = philox(
        {static_cast<std::uint32_t>(block_), purpose_word_ | high, entity_[0], entity_[1]}, key_);
    ++block_;
    left_ = kWords;
  }

  PhiloxKey key_;
  std::array<std::uint32_t, 2> entity_;
  std::uint32_t purpose_word_;
  std::uint32_t left_ = 0;  // number of unused words of words_, which are the last ones
  std::uint64_t block_ = 0;
  PhiloxCounter words_{};
};

// Lemire, "Fast random integer generation in an interval" (2019): the high half of draw * n is
// uniform if draws whose low half is below 2^bits mod n are repeated. `bits` is 32 or 64, the bits
// of a draw.
inline std::uint64_t RandomStream::below(std::uint64_t n) {
  LEEWAY_ASSERT(n > 0);
  if (n <= kOneF32) {
    std::uint64_t product = u32() * n;
    if (product % kOneF32 < n) {
      const std::uint64_t refused = kOneF32 % n;
      while (product % kOneF32 < refused) product = u32() * n;
    }
    return product >> 32;
  }
  Wide product = Wide{u64()} * n;
  const std::uint64_t refused = (0 - n) % n;
  while (static_cast<std::uint64_t>(product) < refused) product = Wide{u64()} * n;
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace leeway::sim
