// Arithmetic of polynomials over GF(2) modulo the CRC-32C polynomial, at compile time: the source
// of every table and fold constant of crc32c.cc.
//
// Reflected notation throughout: bit 31 of a word is the coefficient of x^0, bit 0 that of x^31.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leeway::internal {

inline constexpr std::uint32_t kCrc32cPolynomial =
    0x82F63B78;  // 0x1EDC6F41 reflected; x^32 is implied

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kCrc32cPolynomial : 0);
}

constexpr std::uint32_t x_to_the(std::size_t power) {
  std::uint32_t a = 0x80000000;
  for (std::size_t i = 0; i < power; ++i) a = times_x(a);
  return a;
}

// Multipliers that move a 128-bit remainder `bytes` further into the message, half by half. The
// half that came first in memory stands 64 bits higher, so the halves need x^(bits + 64) and
// x^bits. Each exponent is 1 less here, because the carry-less product of two reflected 64-bit
// words has a factor x of its own.
struct FoldConstants {
  std::uint64_t low;  // multiplier of the half that came first in memory
  std::uint64_t high;
};
constexpr FoldConstants fold_constants(std::size_t bytes) {
  const std::size_t bits = 8 * bytes;
  return {std::uint64_t{x_to_the(bits + 63)} << 32, std::uint64_t{x_to_the(bits - 1)} << 32};
}

// table[k][b] is the remainder of byte b followed by k zero bytes.
using SlicingTables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr SlicingTables slicing_tables() {
  SlicingTables table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t a = byte;
    for (int bit = 0; bit < 8; ++bit) a = times_x(a);
    table[0][byte] = a;
  }
  for (std::size_t k = 1; k < table.size(); ++k) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t a = table[k - 1][byte];
      table[k][byte] = (a >> 8) ^ table[0][a & 0xFF];
    }
  }
  return table;
}

}  // namespace leeway::internal
