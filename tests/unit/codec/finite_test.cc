// An infinity or NaN must be found wherever it lies, and no other value may be taken for one.
#include "codec/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

template <typename T>
ByteSpan bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(AllFinite, FindsOneOfAnySizeAtAnyPlaceAndAddress) {
  for_each_supported_target([] {
    for (std::size_t count = 0; count <= 130; ++count) {
      std::vector<float> values(count + 1, std::numeric_limits<float>::max());
      std::vector<std::byte> shifted(count * sizeof(float) + 1);
      const auto finite = [&] {
        std::memcpy(shifted.data() + 1, values.data(), count * sizeof(float));
        return all_finite(DataType::f32, ByteSpan(shifted).subspan(1));
      };
      values[count] = NAN;  // behind the end
      EXPECT_TRUE(finite()) << count;
      for (std::size_t i = 0; i < count; ++i) {
        for (const float odd : {INFINITY, -INFINITY, NAN}) {
          values[i] = odd;
          EXPECT_FALSE(finite()) << count << " " << i;
        }
        values[i] = -std::numeric_limits<float>::denorm_min();
      }
    }
  });
}

// Tries every bit pattern of a narrow type.
template <typename Word>
void expect_each(DataType dtype, Word exponent, bool only_all_ones) {
  for (std::uint32_t bits = 0; bits <= std::numeric_limits<Word>::max(); ++bits) {
    const std::vector<Word> values = {0, 1, static_cast<Word>(bits), 2};
    const bool odd = only_all_ones ? (bits & 0x7F) == 0x7F : (bits & exponent) == exponent;
    ASSERT_EQ(all_finite(dtype, bytes_of(values)), !odd) << to_string(dtype) << " " << bits;
  }
}

TEST(AllFinite, KnowsEveryValueOfNarrowTypes) {
  expect_each<std::uint16_t>(DataType::f16, 0x7C00, false);
  expect_each<std::uint16_t>(DataType::bf16, 0x7F80, false);
  expect_each<std::uint8_t>(DataType::f8e5m2, 0x7C, false);
  expect_each<std::uint8_t>(DataType::f8e4m3, 0, true);
}

TEST(AllFinite, KnowsDoubles) {
  std::vector<double> values(5, -std::numeric_limits<double>::max());
  EXPECT_TRUE(all_finite(DataType::f64, bytes_of(values)));
  for (const double odd : {-static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    values[4] = odd;
    EXPECT_FALSE(all_finite(DataType::f64, bytes_of(values)));
  }
}

}  // namespace
}  // namespace leeway::codec
