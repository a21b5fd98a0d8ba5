// Integer arithmetic for products of fractions, roots, logarithms and powers of two. It replaces
// floating point and the mathematics library, whose results differ between machines.
//
// In names, f63 marks an integer that stands for value * 2^63, in [0, 2^63], and f32 one that
// stands for value * 2^32. Every result depends only on the arguments, on every compiler and
// machine.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace leeway::sim {

__extension__ using Wide = unsigned __int128;

inline constexpr std::uint64_t kOneF63 = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kOneF32 = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kLn2F63 = 0x58B90BFBE8E7BCD6;  // ln 2 * 2^63, to nearest
inline constexpr std::uint64_t kLog2EF32 = 0x171547653;       // log2(e) * 2^32, to nearest

// Returns the product of two fractions in [0, 1], rounded to nearest. Factors and product are
// stored times 2^63.
constexpr std::uint64_t multiply_f63(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((Wide{a} * b + (kOneF63 >> 1)) >> 63);
}

// Returns x * 2^32 for x >= 0. Bits of x below 2^-32 are cut off.
constexpr std::uint64_t to_f32(double x) {
  return static_cast<std::uint64_t>(x * 0x1p32);
}

// Returns the greatest r with r * r <= n, by Newton's method from above.
constexpr std::uint64_t floor_sqrt(std::uint64_t n) {
  if (n == 0) return 0;
  std::uint64_t root = std::uint64_t{1} << (std::bit_width(n) + 1) / 2;
  for (;;) {
    const std::uint64_t better = (root + n / root) / 2;
    if (better >= root) return root;
    root = better;
  }
}

namespace internal {

// The tables for log2 and exp2 have 2^kTableBits intervals, between which values are interpolated
// linearly.
inline constexpr int kTableBits = 10;
inline constexpr std::size_t kIntervals = std::size_t{1} << kTableBits;
using Table = std::array<std::uint64_t, kIntervals + 1>;

// Returns log2(1 + i / kIntervals) * 2^32 for each i, rounded down. Each squaring of x in [1, 2)
// yields one bit of the logarithm.
constexpr Table make_log2_table() {
  Table table{};
  for (std::size_t i = 0; i < kIntervals; ++i) {
    Wide x = Wide{kIntervals + i} << (62 - kTableBits);  // 2^62 is one
    std::uint64_t log = 0;
    for (int bit = 0; bit < 32; ++bit) {
      x = x * x >> 62;
      const bool two_or_more = x >> 63 != 0;
      log = log << 1 | (two_or_more ? 1 : 0);
      if (two_or_more) x >>= 1;
    }
    table[i] = log;
  }
  table[kIntervals] = kOneF32;
  return table;
}

// Returns 2^(i / kIntervals) * 2^32 for each i, rounded to nearest. Each entry is a product of
// roots, which are rounded, too.
constexpr Table make_exp2_table() {
  // roots[k] is 2^(2^-(k + 1)), with 2^62 standing for 1. Each root is the square root of the one
  // before it.
  std::array<std::uint64_t, kTableBits> roots{};
  std::uint64_t value = std::uint64_t{1} << 63;
  for (auto& root : roots) {
    // sqrt(value / 2^62) * 2^62 = sqrt(value) * 2^31. floor_sqrt() gives the high bits, and two
    // steps of Newton's method the lower 31.
    std::uint64_t x = floor_sqrt(value) << 31;
    for (int step = 0; step < 2; ++step) {
      x = static_cast<std::uint64_t>((x + (Wide{value} << 62) / x) / 2);
    }
    value = root = x;
  }
  Table table{};
  for (std::size_t i = 0; i < kIntervals; ++i) {
    Wide product = Wide{1} << 62;
    for (std::size_t bit = 0; bit < kTableBits; ++bit) {
      if (i >> (kTableBits - 1 - bit) & 1) product = product * roots[bit] >> 62;
    }
    table[i] = static_cast<std::uint64_t>((product + (1u << 29)) >> 30);
  }
  table[kIntervals] = 2 * kOneF32;
  return table;
}

inline constexpr Table kLog2Table = make_log2_table();
inline constexpr Table kExp2Table = make_exp2_table();

// Interpolates the table linearly. `fraction` is a place in the table's range, from 0 to 2^32 - 1.
constexpr std::uint64_t interpolate(const Table& table, std::uint64_t fraction) {
  constexpr int kRest = 32 - kTableBits;
  const std::size_t i = fraction >> kRest;
  const std::uint64_t rest = fraction & ((std::uint64_t{1} << kRest) - 1);
  return table[i] + ((table[i + 1] - table[i]) * rest >> kRest);
}

}  // namespace internal

// Returns -log2(n / 2^64) * 2^32 for n > 0, in (0, 64 * 2^32]. As a logarithm, before the factor
// 2^32, the result is at most 1.8e-7 above the true value, and at most 2^-31 below it.
constexpr std::uint64_t negative_log2(std::uint64_t n) {
  const int zeros = std::countl_zero(n);
  const std::uint64_t mantissa = n << zeros << 1 >> 32;  // the fraction of 1.m, leading one dropped
  return (static_cast<std::uint64_t>(zeros) + 1) * kOneF32 -
         internal::interpolate(internal::kLog2Table, mantissa);
}

// Returns scale * 2^(x / 2^32), or `limit` if that is less. The result is at most 6e-8 (relative)
// above the true value.
constexpr std::uint64_t scale_by_exp2(std::uint64_t scale, std::int64_t x_f32,
                                      std::uint64_t limit) {
  const std::int64_t whole = x_f32 >> 32;  // rounds down, also below zero
  const auto fraction = static_cast<std::uint64_t>(x_f32) % kOneF32;
  const Wide product = Wide{scale} * internal::interpolate(internal::kExp2Table, fraction);
  if (whole <= -96) return 0;
  if (whole <= 32) {
    const Wide result = product >> (32 - whole);
    return result < limit ? static_cast<std::uint64_t>(result) : limit;
  }
  if (product == 0) return 0;
  // The result is at least 2^(whole - 32), since product >= 2^32.
  if (whole - 32 >= 63 || product >> (96 - (whole - 32)) != 0) return limit;
  const Wide result = product << (whole - 32);
  return result < limit ? static_cast<std::uint64_t>(result) : limit;
}

}  // namespace leeway::sim
