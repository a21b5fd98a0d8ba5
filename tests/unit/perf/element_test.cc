#include "perf/element.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

namespace leeway::tools::perf {
namespace {

constexpr DataType kAllTypes[] = {
    DataType::f32,    DataType::f64,    DataType::f16,    DataType::bf16, DataType::i8,
    DataType::i32,    DataType::i64,    DataType::u8,     DataType::u32,  DataType::u64,
    DataType::f8e4m3, DataType::f8e5m2, DataType::boolean};

double round_trip(DataType type, double value) {
  std::array<std::byte, 32> memory{};
  const TensorView tensor(memory.data(), 32 / size_of(type), type);
  store_element(tensor, 1, value);
  return load_element(tensor, 1);
}

std::uint16_t bits_of(DataType type, double value) {
  std::uint16_t bits = 0;
  store_element(TensorView(&bits, 1, type), 0, value);
  return bits;
}

double value_of(DataType type, std::uint16_t bits) {
  return load_element(ConstTensorView(&bits, 1, type), 0);
}

TEST(Element, EveryIntegerUpToTheBoundSurvives) {
  for (const DataType type : kAllTypes) {
    const double bound = std::min(3000.0, integer_max(type));
    const bool is_signed =
        is_floating(type) || type == DataType::i8 || type == DataType::i32 || type == DataType::i64;
    const double lowest = is_signed ? -bound : 0;
    for (double value = lowest; value <= bound; ++value) {
      ASSERT_EQ(round_trip(type, value), value) << to_string(type);
    }
  }
}

TEST(Element, TheBoundItselfSurvives) {
  for (const DataType type : kAllTypes)
    EXPECT_EQ(round_trip(type, integer_max(type)), integer_max(type)) << to_string(type);
}

TEST(Element, TheBoundIsTightForNarrowFloats) {
  EXPECT_NE(round_trip(DataType::bf16, integer_max(DataType::bf16) + 1),
            integer_max(DataType::bf16) + 1);
  EXPECT_NE(round_trip(DataType::f16, integer_max(DataType::f16) + 1),
            integer_max(DataType::f16) + 1);
  EXPECT_EQ(round_trip(DataType::f8e4m3, 17), 16);
  EXPECT_EQ(round_trip(DataType::f8e5m2, 9), 8);
}

TEST(Element, NeighboursAreLeftAlone) {
  std::array<std::int8_t, 3> memory{1, 2, 3};
  store_element(std::span(memory), 1, -7);
  EXPECT_EQ(memory, (std::array<std::int8_t, 3>{1, -7, 3}));
}

TEST(Element, HalfBitsAreIeee) {
  EXPECT_EQ(bits_of(DataType::f16, 0), 0x0000);
  EXPECT_EQ(bits_of(DataType::f16, 1), 0x3C00);
  EXPECT_EQ(bits_of(DataType::f16, -2), 0xC000);
  EXPECT_EQ(bits_of(DataType::f16, 2048), 0x6800);
  EXPECT_EQ(bits_of(DataType::bf16, 1), 0x3F80);
  EXPECT_EQ(bits_of(DataType::bf16, -256), 0xC380);
}

TEST(Element, SpecialHalvesAreRead) {
  EXPECT_EQ(value_of(DataType::f16, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(value_of(DataType::f16, 0x83FF), -std::ldexp(1023.0, -24));
  EXPECT_EQ(value_of(DataType::f16, 0x7BFF), 65504);
  EXPECT_EQ(value_of(DataType::f16, 0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(value_of(DataType::f16, 0x7E00)));
  EXPECT_TRUE(std::isnan(value_of(DataType::bf16, 0x7FC0)));
}

}  // namespace
}  // namespace leeway::tools::perf
