// Compares every kernel that this processor can run with independent arithmetic of this test.
#include "erasure/products.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string_view>
#include <vector>

#include "unit/erasure/galois.h"

namespace leeway::erasure::internal {
namespace {

using Rows = std::vector<std::vector<unsigned char>>;

Rows random_rows(std::size_t count, std::size_t bytes, std::mt19937& random) {
  Rows rows(count, std::vector<unsigned char>(bytes));
  for (auto& row : rows) {
    for (unsigned char& value : row) value = static_cast<unsigned char>(random());
  }
  return rows;
}

// Returns the kernel's sums. The targets are 3 bytes longer than the sums and were filled with
// another value, so that writes beyond the sums can be seen.
Rows sum(const ProductKernel& kernel, const std::vector<std::uint8_t>& coefficients,
         const Rows& sources, std::size_t targets, std::size_t bytes) {
  std::vector<unsigned char> tables(coefficients.size() * kernel.table_bytes);
  kernel.make_tables(coefficients, tables.data());
  Rows out(targets, std::vector<unsigned char>(bytes + 3, 0x5A));
  std::vector<const unsigned char*> from;
  std::vector<unsigned char*> to;
  for (const auto& row : sources) from.push_back(row.data());
  for (auto& row : out) to.push_back(row.data());
  kernel.sum(bytes, tables.data(), from, to);
  return out;
}

TEST(Products, AnywhereThereIsIsaL) {
  EXPECT_EQ(std::string_view(product_kernels().back().name), "isal");
  for (const ProductKernel& kernel : product_kernels())
    EXPECT_LE(kernel.table_bytes, kTableBytesMax) << kernel.name;
}

TEST(Products, MultiplyEveryByteByEveryCoefficient) {
  Rows source(1, std::vector<unsigned char>(256));
  for (unsigned value = 0; value < 256; ++value)
    source[0][value] = static_cast<unsigned char>(value);
  for (const ProductKernel& kernel : product_kernels()) {
    for (unsigned coefficient = 0; coefficient < 256; ++coefficient) {
      const Rows product = sum(kernel, {static_cast<std::uint8_t>(coefficient)}, source, 1, 256);
      for (unsigned value = 0; value < 256; ++value)
        ASSERT_EQ(product[0][value], times(coefficient, value))
            << kernel.name << ": " << coefficient << ", " << value;
    }
  }
}

// Tries lengths near those of vectors, and numbers of targets that need every group of the GFNI
// kernel (8, 4, 2 and 1). Nothing may be written beyond the targets.
TEST(Products, SumThem) {
  std::mt19937 random(21);
  for (const std::size_t bytes : {1, 31, 32, 63, 64, 65, 200, 512}) {
    for (const std::size_t targets : {1, 2, 3, 7, 8, 15, 96}) {
      for (const std::size_t count : {1, 2, 5, 128}) {
        const Rows sources = random_rows(count, bytes, random);
        const std::vector<std::uint8_t> coefficients =
            random_rows(1, targets * count, random).front();
        Rows expected(targets, std::vector<unsigned char>(bytes + 3, 0x5A));
        for (std::size_t t = 0; t < targets; ++t) {
          for (std::size_t at = 0; at < bytes; ++at) {
            unsigned value = 0;
            for (std::size_t i = 0; i < count; ++i)
              value ^= times(coefficients[t * count + i], sources[i][at]);
            expected[t][at] = static_cast<unsigned char>(value);
          }
        }
        for (const ProductKernel& kernel : product_kernels())
          ASSERT_EQ(sum(kernel, coefficients, sources, targets, bytes), expected)
              << kernel.name << ": " << bytes << " bytes, " << targets << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace leeway::erasure::internal
