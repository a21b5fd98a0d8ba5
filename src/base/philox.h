// Philox4x32, the counter-based random generator behind every keyed decision: packet order, virtual
// loss, injected faults, stochastic rounding. Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (2011).
//
// A draw depends only on its key and counter, never on the order of draws, so resends, threads and
// machines agree. By contract the key is (low half, high half) of the seed, and the counter is (a,
// b, c, d). The top 4 bits of b name the purpose (the stream), so that two purposes never share a
// draw.
#pragma once

#include <array>
#include <cstdint>

namespace leeway {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;  // as the wire prescribes

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  // The words are variables and not array elements. Without optimisation, accesses to elements are
  // calls, and tests that draw their data under sanitizers spent two thirds of their time in them.
  auto c0 = counter[0];
  auto c1 = counter[1];
  auto c2 = counter[2];
  auto c3 = counter[3];
  auto k0 = key[0];
  auto k1 = key[1];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c0;
    const std::uint64_t product1 = kMultiplier1 * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

// Returns 64 uniform bits for counter (a, b, c, d): output words 0 (low half) and 1 (high half).
constexpr std::uint64_t keyed_hash(std::uint64_t seed, std::uint32_t a, std::uint32_t b,
                                   std::uint32_t c, std::uint32_t d) {
  const PhiloxCounter words = philox({a, b, c, d}, philox_key(seed));
  return words[0] | std::uint64_t{words[1]} << 32;
}

// Converts uniform bits to a uniform number in [0, 1), a multiple of 2^-53.
constexpr double to_unit(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace leeway
