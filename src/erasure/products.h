// Sums of products over GF(2^8), polynomial 0x11D, by what the processor does best:
//   gfni   AVX-512 and GFNI: one instruction multiplies 64 bytes
//   isal   ISA-L, anywhere
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leeway::erasure::internal {

struct ProductKernel {
  const char* name;
  std::size_t table_bytes;  // of each coefficient
  // Writes the tables of so many coefficients, one after the other.
  void (*make_tables)(std::span<const std::uint8_t> coefficients, unsigned char* tables);
  // Target r becomes the sum over all i of coefficient [r * sources.size() + i] times source i,
  // over `bytes` bytes of each. No target lies in a source.
  void (*sum)(std::size_t bytes, const unsigned char* tables,
              std::span<const unsigned char* const> sources,
              std::span<unsigned char* const> targets);
};

inline constexpr std::size_t kTableBytesMax = 32;

// What this processor can run, the fastest first.
std::span<const ProductKernel> product_kernels();

}  // namespace leeway::erasure::internal
