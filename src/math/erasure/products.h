// Sums of products over GF(2^8), polynomial 0x11D, with the fastest kernel that the processor has:
//   gfni   AVX-512 and GFNI: one instruction multiplies 64 bytes
//   isal   ISA-L, anywhere
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leeway::erasure::internal {

struct ProductKernel {
  const char* name;
  std::size_t table_bytes;  // bytes for each coefficient
  // Writes the tables of all coefficients, one after the other.
  void (*make_tables)(std::span<const std::uint8_t> coefficients, unsigned char* tables);
  // Target r becomes the sum over all i of coefficient [r * sources.size() + i] times source i,
  // over `bytes` bytes of each. Targets and sources do not overlap.
  void (*sum)(std::size_t bytes, const unsigned char* tables,
              std::span<const unsigned char* const> sources,
              std::span<unsigned char* const> targets);
};

inline constexpr std::size_t kTableBytesMax = 32;

// Returns the kernels that this processor can run, the fastest first.
std::span<const ProductKernel> product_kernels();

}  // namespace leeway::erasure::internal
