// Compares element conversions with those of the CUDA toolkit, on a stride of all floats and on
// midpoints between neighbours. Built only where the toolkit's headers were found;
// `codec_exhaustive` compares all 2^32 floats.
#include "unit/codec/cuda_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "unit/codec/element_tables.h"

namespace leeway::codec {
namespace {

constexpr std::uint64_t kAllFloats = std::uint64_t{1} << 32;
constexpr std::uint64_t kStride = 2017;  // prime: every exponent with all kinds of mantissas

TEST(CudaOracle, EncodesEveryFloatOfAStrideAsWeDo) {
  for (const ElementTable& table : element_tables()) {
    if (!cuda_has(table.format)) continue;
    std::uint64_t wrong = 0;
    for (std::uint64_t bits = 0; bits < kAllFloats; bits += kStride) {  // infinities and NaN too
      const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      wrong += encode_nearest(table.format, x) != cuda_encode(table.format, x);
    }
    EXPECT_EQ(wrong, 0u) << table.name;
  }
}

TEST(CudaOracle, EncodesTiesAndTheirNeighboursAsWeDo) {
  for (const ElementTable& table : element_tables()) {
    if (!cuda_has(table.format)) continue;
    SCOPED_TRACE(table.name);
    for (const double exact : midpoints(table)) {
      const auto middle = static_cast<float>(exact);
      for (const float towards : {0.0f, middle, std::numeric_limits<float>::infinity()}) {
        const float x = std::nextafter(middle, towards);
        ASSERT_EQ(encode_nearest(table.format, x), cuda_encode(table.format, x)) << x;
        ASSERT_EQ(encode_nearest(table.format, -x), cuda_encode(table.format, -x)) << -x;
      }
    }
  }
}

TEST(CudaOracle, SaturatesInfinityAndEncodesNanAsWeDo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const ElementTable& table : element_tables()) {
    if (!cuda_has(table.format)) continue;
    SCOPED_TRACE(table.name);
    for (const float x : {kInfinity, -kInfinity, kNan, -kNan, 0.0f, -0.0f}) {
      EXPECT_EQ(encode_nearest(table.format, x), cuda_encode(table.format, x)) << x;
    }
  }
}

TEST(CudaOracle, DecodesEveryCodeAsWeDo) {
  for (const ElementTable& table : element_tables()) {
    if (!cuda_has(table.format)) continue;
    SCOPED_TRACE(table.name);
    for (int code = 0; code < 1 << table.format.code_bits; ++code) {
      const float ours = decode(table.format, code);
      const float theirs = cuda_decode(table.format, code);
      if (std::isnan(theirs)) {
        ASSERT_TRUE(std::isnan(ours)) << code;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs)) << code;
      }
    }
  }
}

}  // namespace
}  // namespace leeway::codec
