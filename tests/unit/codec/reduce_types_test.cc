// Compares every reduction of every element type with the obvious computation: for all pairs of the
// 8-bit types, all values of the 16-bit types beside a choice of others, and chosen values of the
// wide types.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "codec/element.h"
#include "codec/float8.h"
#include "codec/reduce.h"
#include "supported_targets.h"

namespace leeway::codec {
namespace {

constexpr std::array kReductions = {ReduceOp::sum,  ReduceOp::avg, ReduceOp::prod,
                                    ReduceOp::min,  ReduceOp::max, ReduceOp::premul_sum,
                                    ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};

// widened() reads one element of a type, and narrow() writes one.
float widened(Half value) {
  return float_from_half(value);
}
float widened(BFloat16 value) {
  return float_from_bfloat16(value);
}
float widened(F8E4M3 value) {
  return float_from_f8(value);
}
float widened(F8E5M2 value) {
  return float_from_f8(value);
}
void narrow(float value, Half& to) {
  to = half_from_float(value);
}
void narrow(float value, BFloat16& to) {
  to = bfloat16_from_float(value);
}
void narrow(float value, F8E4M3& to) {
  to = f8e4m3_from_float(value);
}
void narrow(float value, F8E5M2& to) {
  to = f8e5m2_from_float(value);
}

template <typename T>
concept Narrow = requires(T value) {
  widened(value);
};

template <typename T>
T least(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return a <= b ? a : b;
}
template <typename T>
T greatest(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return a >= b ? a : b;
}

template <typename T>
T naive_floats(ReduceOp op, const std::vector<T>& values) {
  T result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const T x = values[i];
    result = op == ReduceOp::prod  ? result * x
             : op == ReduceOp::min ? least(result, x)
             : op == ReduceOp::max ? greatest(result, x)
                                   : result + x;
  }
  return op == ReduceOp::avg ? result / static_cast<T>(values.size()) : result;
}

__extension__ typedef __int128 Integer128;
__extension__ typedef unsigned __int128 Unsigned128;

// Reduces in 128 bits and truncates to the type at the end. An average divides the truncated sum.
template <typename T>
T naive_integers(ReduceOp op, const std::vector<T>& values) {
  Integer128 result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Integer128 x = values[i];
    switch (op) {
      case ReduceOp::prod:
        result = static_cast<T>(static_cast<Unsigned128>(result) * static_cast<Unsigned128>(x));
        break;
      case ReduceOp::min:
        result = std::min(result, x);
        break;
      case ReduceOp::max:
        result = std::max(result, x);
        break;
      case ReduceOp::band:
        result &= x;
        break;
      case ReduceOp::bor:
        result |= x;
        break;
      case ReduceOp::bxor:
        result ^= x;
        break;
      default:
        result += x;
    }
  }
  const auto wrapped = static_cast<T>(result);
  if (op != ReduceOp::avg) return wrapped;
  return static_cast<T>(static_cast<Integer128>(wrapped) / static_cast<Integer128>(values.size()));
}

std::uint8_t naive_truths(ReduceOp op, const std::vector<std::uint8_t>& values) {
  bool all = true;
  bool any = false;
  bool odd = false;
  for (const std::uint8_t value : values) {
    all &= value != 0;
    any |= value != 0;
    odd ^= value != 0;
  }
  if (op == ReduceOp::bxor) return odd;
  return op == ReduceOp::prod || op == ReduceOp::min || op == ReduceOp::band ? all : any;
}

template <typename T>
T naive(ReduceOp op, const std::vector<T>& values) {
  if constexpr (Narrow<T>) {
    std::vector<float> wide;
    for (const T value : values) wide.push_back(widened(value));
    T result;
    narrow(naive_floats(op, wide), result);
    return result;
  } else if constexpr (std::is_floating_point_v<T>) {
    return naive_floats(op, values);
  } else {
    return naive_integers(op, values);
  }
}

template <typename T>
bool same(const T& a, const T& b) {
  if constexpr (Narrow<T>) {
    if (std::isnan(widened(a))) return std::isnan(widened(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return std::isnan(b);
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <typename T>
void expect_naive(const std::vector<std::vector<T>>& inputs) {
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) pointers.push_back(std::as_bytes(std::span(input)).data());
  for (const ReduceOp op : kReductions) {
    if (!is_defined(op, DataTypeOf<T>::value)) continue;
    std::vector<T> out(inputs[0].size());
    reduce(op, DataTypeOf<T>::value, pointers, std::as_writable_bytes(std::span(out)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::vector<T> values;
      for (const auto& input : inputs) values.push_back(input[i]);
      ASSERT_TRUE(same(naive(op, values), out[i])) << to_string(op) << " at " << i;
    }
  }
}

template <typename T>
T of_bits(std::uint32_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
class ReducePairs : public testing::Test {};
using Bytes = testing::Types<std::int8_t, std::uint8_t, F8E4M3, F8E5M2>;
TYPED_TEST_SUITE(ReducePairs, Bytes);

TYPED_TEST(ReducePairs, OfAllValuesOfAByte) {
  std::vector<TypeParam> a;
  std::vector<TypeParam> b;
  for (std::uint32_t pair = 0; pair < 65536; ++pair) {
    a.push_back(of_bits<TypeParam>(pair >> 8));
    b.push_back(of_bits<TypeParam>(pair & 255));
  }
  expect_naive<TypeParam>({a, b});
  expect_naive<TypeParam>({a, b, b});
}

template <typename T>
class ReduceSixteenBits : public testing::Test {};
using SixteenBits = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ReduceSixteenBits, SixteenBits);

TYPED_TEST(ReduceSixteenBits, OfAllValuesBesideOthers) {
  std::vector<TypeParam> all;
  std::vector<TypeParam> turned;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    all.push_back(of_bits<TypeParam>(bits));
    turned.push_back(of_bits<TypeParam>((bits * 40503 + 977) & 0xFFFF));
  }
  for (const std::uint32_t other :
       {0x0000u, 0x8000u, 0x3F80u, 0x3C00u, 0x0001u, 0x7BFFu, 0xFF80u}) {
    const std::vector<TypeParam> same_value(65536, of_bits<TypeParam>(other));
    expect_naive<TypeParam>({all, same_value});
    expect_naive<TypeParam>({all, turned, same_value});
  }
}

template <typename T>
class ReduceWide : public testing::Test {};
using Wide =
    testing::Types<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(ReduceWide, Wide);

TYPED_TEST(ReduceWide, OfChosenValues) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> chosen = {
      0, 1, 2, 3, 7, 100, Limits::max(), Limits::lowest(), Limits::max() / 2, Limits::lowest() / 3};
  if constexpr (std::is_floating_point_v<TypeParam>) {
    for (const TypeParam value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                  Limits::denorm_min(), TypeParam{-0.3}})
      chosen.push_back(value);
  }
  std::vector<std::vector<TypeParam>> inputs(3);
  for (const TypeParam a : chosen) {
    for (const TypeParam b : chosen) {
      for (const TypeParam c : chosen) {
        inputs[0].push_back(a);
        inputs[1].push_back(b);
        inputs[2].push_back(c);
      }
    }
  }
  expect_naive(inputs);
}

TEST(ReduceBooleans, AnyByteButZeroIsTrueAndResultsAreZeroOrOne) {
  std::vector<std::uint8_t> a;
  std::vector<std::uint8_t> b;
  for (std::uint32_t pair = 0; pair < 65536; ++pair) {
    a.push_back(static_cast<std::uint8_t>(pair >> 8));
    b.push_back(static_cast<std::uint8_t>(pair));
  }
  const std::array inputs = {std::as_bytes(std::span(a)).data(), std::as_bytes(std::span(b)).data(),
                             std::as_bytes(std::span(b)).data()};
  for (const ReduceOp op : kReductions) {
    if (!is_defined(op, DataType::boolean)) continue;
    std::vector<std::uint8_t> out(a.size());
    reduce(op, DataType::boolean, inputs, std::as_writable_bytes(std::span(out)));
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], naive_truths(op, {a[i], b[i], b[i]})) << to_string(op) << " " << i;
  }
}

TEST(ReduceIsDefined, ForBitsOfIntegersAndForNumbersOfAllButBooleans) {
  for (int type = 0; type < kDataTypeCount; ++type) {
    const auto dtype = static_cast<DataType>(type);
    const bool truths = dtype == DataType::boolean;
    EXPECT_EQ(is_defined(ReduceOp::bxor, dtype), !is_floating(dtype)) << to_string(dtype);
    EXPECT_EQ(is_defined(ReduceOp::avg, dtype), !truths) << to_string(dtype);
    EXPECT_EQ(is_defined(ReduceOp::premul_sum, dtype), !truths) << to_string(dtype);
    EXPECT_TRUE(is_defined(ReduceOp::sum, dtype)) << to_string(dtype);
  }
}

template <typename T>
std::vector<T> multiplied(const Scalar& factor, const std::vector<T>& values) {
  std::vector<T> out(values.size());
  multiply(DataTypeOf<T>::value, factor, std::as_bytes(std::span(values)),
           std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Multiply, IsExactForIntegersOfSixtyFourBits) {
  // No double equals 2^53 + 1, so doubles would not be exact.
  constexpr std::int64_t kFactor = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(multiplied<std::int64_t>(kFactor, {1, -3}),
            (std::vector<std::int64_t>{kFactor, -3 * kFactor}));
  EXPECT_EQ(multiplied<std::uint64_t>(~std::uint64_t{0}, {1, 2}),
            (std::vector<std::uint64_t>{~std::uint64_t{0}, ~std::uint64_t{0} - 1}));
  EXPECT_EQ(multiplied<std::int8_t>(-128, {-1}), std::vector<std::int8_t>{-128});
}

TEST(Multiply, RoundsTheProductToTheTypeOnce) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = of_bits<BFloat16>(bits);
    BFloat16 expected;
    narrow(0.3f * widened(value), expected);
    ASSERT_TRUE(same(expected, multiplied<BFloat16>(0.3, {value})[0])) << bits;
  }
  EXPECT_EQ(multiplied<double>(0.1, {3.0}), std::vector<double>{0.1 * 3.0});
  EXPECT_EQ(multiplied<float>(0.1, {3.0f}), std::vector<float>{0.1f * 3.0f});
}

TEST(Multiply, TakesFactorsOfTheTypeOnly) {
  EXPECT_TRUE(is_factor(0.5, DataType::f8e4m3));
  EXPECT_TRUE(is_factor(3.0, DataType::i32));
  EXPECT_FALSE(is_factor(0.5, DataType::i32));
  EXPECT_FALSE(is_factor(-1, DataType::u64));
  EXPECT_FALSE(is_factor(256, DataType::u8));
  EXPECT_FALSE(is_factor(1, DataType::boolean));
}

template <Minifloat element, typename T>
void expect_float8_kernels_agree() {
  std::vector<float> values;
  // All signs, exponents and upper mantissa bits.
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    values.push_back(std::bit_cast<float>(bits << 16));
    values.push_back(std::bit_cast<float>(bits << 16 | 1));
    values.push_back(std::bit_cast<float>(bits << 16 | 0x8000));
  }
  values.push_back(1.0f);  // so that the end is no whole vector
  std::vector<T> out(values.size());
  encode_float8(DataTypeOf<T>::value, values, std::as_writable_bytes(std::span(out)).data());
  std::vector<float> back(values.size());
  decode_float8(DataTypeOf<T>::value, std::as_bytes(std::span(out)).data(), back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    T expected;
    narrow(values[i], expected);
    ASSERT_EQ(expected.bits, out[i].bits) << values[i];
    ASSERT_TRUE(same(decode(element, out[i].bits), back[i])) << values[i];
  }
}

TEST(Float8, EveryInstructionSetRoundsAsTheDefinition) {
  for_each_supported_target([] {
    expect_float8_kernels_agree<kE4M3, F8E4M3>();
    expect_float8_kernels_agree<kE5M2, F8E5M2>();
  });
}

TEST(Float8, FiniteValuesSaturateAndInfinitiesStayWhereThereAreAny) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_from_f8(f8e4m3_from_float(1e9f)), 448);
  EXPECT_EQ(float_from_f8(f8e4m3_from_float(-kInfinity)), -448);
  EXPECT_EQ(float_from_f8(f8e5m2_from_float(1e9f)), 57344);
  EXPECT_EQ(float_from_f8(f8e5m2_from_float(-kInfinity)), -kInfinity);
}

}  // namespace
}  // namespace leeway::codec
