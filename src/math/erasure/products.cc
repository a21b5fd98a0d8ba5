#include "erasure/products.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leeway::erasure::internal {
namespace {

void make_isal_tables(std::span<const std::uint8_t> coefficients, unsigned char* tables) {
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    gf_vect_mul_init(coefficients[i], tables + kTableBytesMax * i);
}

// ISA-L's parameters are not const.
void sum_isal(std::size_t bytes, const unsigned char* tables,
              std::span<const unsigned char* const> sources,
              std::span<unsigned char* const> targets) {
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(sources.size()),
                 static_cast<int>(targets.size()), const_cast<unsigned char*>(tables),
                 const_cast<unsigned char**>(sources.data()),
                 const_cast<unsigned char**>(targets.data()));
}

#if defined(__x86_64__)

// Multiplication by a coefficient is linear in the bits of a byte. GFNI expects it as a bit matrix,
// of which byte 7 - b selects the bits of the factor that make bit b of the product.
using BitMatrix = std::uint64_t;

constexpr std::array<BitMatrix, 256> bit_matrices() {
  std::array<BitMatrix, 256> all{};
  for (unsigned coefficient = 0; coefficient < 256; ++coefficient) {
    unsigned product = coefficient;  // times 2^bit
    for (unsigned bit = 0; bit < 8; ++bit) {
      for (unsigned b = 0; b < 8; ++b) {
        if (product >> b & 1) all[coefficient] |= BitMatrix{1} << (8 * (7 - b) + bit);
      }
      product = product << 1 ^ (product & 0x80 ? 0x11D : 0);
    }
  }
  return all;
}
constexpr std::array<BitMatrix, 256> kBitMatrices = bit_matrices();

void make_gfni_tables(std::span<const std::uint8_t> coefficients, unsigned char* tables) {
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    std::memcpy(tables + sizeof(BitMatrix) * i, &kBitMatrices[coefficients[i]], sizeof(BitMatrix));
}

#define LEEWAY_GFNI __attribute__((target("gfni,avx512f,avx512bw")))

// Sums for kTargets targets in one walk over the sources, during which the sums stay in registers.
template <std::size_t kTargets>
LEEWAY_GFNI void sum_targets(std::size_t bytes, const unsigned char* tables,
                             std::span<const unsigned char* const> sources,
                             unsigned char* const* targets) {
  constexpr std::size_t kVector = 64;
  const std::size_t row = sizeof(BitMatrix) * sources.size();
  for (std::size_t at = 0; at < bytes; at += kVector) {
    const std::size_t left = std::min(kVector, bytes - at);
    const __mmask64 lanes = ~std::uint64_t{0} >> (kVector - left);
    __m512i sums[kTargets];
    for (std::size_t t = 0; t < kTargets; ++t) sums[t] = _mm512_setzero_si512();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const __m512i factor = _mm512_maskz_loadu_epi8(lanes, sources[i] + at);
      const unsigned char* table = tables + sizeof(BitMatrix) * i;
      for (std::size_t t = 0; t < kTargets; ++t) {
        long long matrix;
        std::memcpy(&matrix, table + row * t, sizeof(matrix));
        sums[t] = _mm512_xor_si512(
            sums[t], _mm512_gf2p8affine_epi64_epi8(factor, _mm512_set1_epi64(matrix), 0));
      }
    }
    for (std::size_t t = 0; t < kTargets; ++t)
      _mm512_mask_storeu_epi8(targets[t] + at, lanes, sums[t]);
  }
}

void sum_gfni(std::size_t bytes, const unsigned char* tables,
              std::span<const unsigned char* const> sources,
              std::span<unsigned char* const> targets) {
  const auto sum_next = [&]<std::size_t kTargets>() {
    while (targets.size() >= kTargets) {
      sum_targets<kTargets>(bytes, tables, sources, targets.data());
      targets = targets.subspan(kTargets);
      tables += sizeof(BitMatrix) * sources.size() * kTargets;
    }
  };
  sum_next.template operator()<8>();
  sum_next.template operator()<4>();
  sum_next.template operator()<2>();
  sum_next.template operator()<1>();
}

bool has_gfni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw");
}

#endif

struct KernelTable {
  std::array<ProductKernel, 2> kernels;
  std::size_t count = 0;
};

KernelTable find_kernels() {
  KernelTable table;
#if defined(__x86_64__)
  if (has_gfni())
    table.kernels[table.count++] = {"gfni", sizeof(BitMatrix), make_gfni_tables, sum_gfni};
#endif
  table.kernels[table.count++] = {"isal", kTableBytesMax, make_isal_tables, sum_isal};
  return table;
}

}  // namespace

std::span<const ProductKernel> product_kernels() {
  static const KernelTable table = find_kernels();
  return std::span(table.kernels).first(table.count);
}

}  // namespace leeway::erasure::internal
