// Compares every operation on every element type with values worked out by hand, at sizes beyond
// the block in which narrow types are widened.
#include "codec/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "codec/element.h"
#include "codec/float8.h"

namespace leeway::codec {
namespace {

template <typename T>
std::vector<T> reduced(ReduceOp op, const std::vector<std::vector<T>>& inputs) {
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) pointers.push_back(std::as_bytes(std::span(input)).data());
  std::vector<T> out(inputs[0].size());
  reduce(op, DataTypeOf<T>::value, pointers, std::as_writable_bytes(std::span(out)));
  return out;
}

template <typename T>
std::vector<T> combined(ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
  return reduced<T>(op, {a, b});
}

// Returns the average of n ranks, of which one has the values and the others have zeros.
template <typename T>
std::vector<T> divided(const std::vector<T>& values, int n) {
  std::vector<std::vector<T>> inputs(n, std::vector<T>(values.size()));
  inputs[0] = values;
  return reduced(ReduceOp::avg, inputs);
}

std::vector<Half> halves(const std::vector<float>& values) {
  std::vector<Half> result;
  for (const float value : values) result.push_back(half_from_float(value));
  return result;
}
std::vector<BFloat16> bfloats(const std::vector<float>& values) {
  std::vector<BFloat16> result;
  for (const float value : values) result.push_back(bfloat16_from_float(value));
  return result;
}
std::vector<float> floats(const std::vector<Half>& values) {
  std::vector<float> result;
  for (const Half value : values) result.push_back(float_from_half(value));
  return result;
}
std::vector<float> floats(const std::vector<BFloat16>& values) {
  std::vector<float> result;
  for (const BFloat16 value : values) result.push_back(float_from_bfloat16(value));
  return result;
}

template <typename T>
class CombineNumbers : public testing::Test {};
using Numbers = testing::Types<float, double, std::int8_t, std::int32_t, std::int64_t, std::uint8_t,
                               std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(CombineNumbers, Numbers);

TYPED_TEST(CombineNumbers, FollowsTheOperation) {
  using V = std::vector<TypeParam>;
  const V a = {7, 2, 10, 0};
  const V b = {3, 5, 10, 9};
  EXPECT_EQ(combined(ReduceOp::sum, a, b), (V{10, 7, 20, 9}));
  EXPECT_EQ(combined(ReduceOp::premul_sum, a, b), (V{10, 7, 20, 9}));
  EXPECT_EQ(combined(ReduceOp::avg, V{7, 2, 10, 0}, V{3, 6, 10, 8}), (V{5, 4, 10, 4}));
  EXPECT_EQ(combined(ReduceOp::prod, a, b), (V{21, 10, 100, 0}));
  EXPECT_EQ(combined(ReduceOp::min, a, b), (V{3, 2, 10, 0}));
  EXPECT_EQ(combined(ReduceOp::max, a, b), (V{7, 5, 10, 9}));
}

TYPED_TEST(CombineNumbers, ReachesEveryElementOfALongTensor) {
  const std::vector<TypeParam> ones(2500, 1);
  EXPECT_EQ(combined(ReduceOp::sum, ones, ones), std::vector<TypeParam>(2500, 2));
}

TYPED_TEST(CombineNumbers, ReadsAnUnalignedOperand) {
  const std::vector<TypeParam> values = {1, 2, 3};
  std::vector<std::byte> memory(1 + 3 * sizeof(TypeParam));
  std::memcpy(&memory[1], values.data(), 3 * sizeof(TypeParam));
  std::vector<TypeParam> sum = {10, 20, 30};
  const std::array inputs = {std::as_bytes(std::span(sum)).data(),
                             static_cast<const std::byte*>(&memory[1])};
  reduce(ReduceOp::sum, DataTypeOf<TypeParam>::value, inputs,
         std::as_writable_bytes(std::span(sum)));
  EXPECT_EQ(sum, (std::vector<TypeParam>{11, 22, 33}));
}

TEST(Combine, WrapsIntegersModuloTheirSize) {
  EXPECT_EQ(combined<std::int8_t>(ReduceOp::sum, {127}, {1}), std::vector<std::int8_t>{-128});
  EXPECT_EQ(combined<std::int8_t>(ReduceOp::prod, {-128}, {-1}), std::vector<std::int8_t>{-128});
  EXPECT_EQ(combined<std::uint8_t>(ReduceOp::sum, {255}, {2}), std::vector<std::uint8_t>{1});
  constexpr auto kMax32 = std::numeric_limits<std::int32_t>::max();
  constexpr auto kMin32 = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(combined<std::int32_t>(ReduceOp::sum, {kMax32}, {1}),
            std::vector<std::int32_t>{kMin32});
  EXPECT_EQ(combined<std::int32_t>(ReduceOp::prod, {65536}, {65536}), std::vector<std::int32_t>{0});
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(combined<std::int64_t>(ReduceOp::prod, {kMax64}, {2}), std::vector<std::int64_t>{-2});
}

TEST(Combine, ComparesSignedAndUnsignedBytesAsSuch) {
  EXPECT_EQ(combined<std::int8_t>(ReduceOp::max, {-1}, {1}), std::vector<std::int8_t>{1});
  EXPECT_EQ(combined<std::uint8_t>(ReduceOp::max, {255}, {1}), std::vector<std::uint8_t>{255});
}

template <typename T>
void expect_nan_wins_on_either_side() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
    const auto result = combined<T>(op, {nan, 1, nan}, {1, nan, nan});
    for (const T value : result) EXPECT_TRUE(std::isnan(value)) << to_string(op);
  }
}

TEST(Combine, PropagatesNanInSumsAndProducts) {
  expect_nan_wins_on_either_side<float>();
  expect_nan_wins_on_either_side<double>();
}

TEST(Combine, LeavesNanOutOfMinimaAndMaxima) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double wide = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const auto check = [&](const auto& result) {
      EXPECT_EQ(result[0], 1) << to_string(op);
      EXPECT_EQ(result[1], 1) << to_string(op);
      EXPECT_TRUE(std::isnan(result[2])) << to_string(op);
    };
    check(combined<float>(op, {nan, 1, nan}, {1, nan, nan}));
    check(combined<double>(op, {wide, 1, wide}, {1, wide, wide}));
    check(floats(combined(op, halves({nan, 1, nan}), halves({1, nan, nan}))));
    check(floats(combined(op, bfloats({nan, 1, nan}), bfloats({1, nan, nan}))));
  }
}

TEST(Combine, RoundsHalvesOnce) {
  // Neighbouring halves above 2,048 differ by 2, so 2,049 and 2,051 are ties. They round to even
  // mantissas: 2,048 and 2,052.
  EXPECT_EQ(floats(combined(ReduceOp::sum, halves({2048, 2050}), halves({1, 1}))),
            (std::vector<float>{2048, 2052}));
  EXPECT_EQ(floats(combined(ReduceOp::prod, halves({300, -300}), halves({300, 0.5}))),
            (std::vector<float>{std::numeric_limits<float>::infinity(), -150}));
  EXPECT_EQ(floats(combined(ReduceOp::min, halves({-2, 3}), halves({1, 2}))),
            (std::vector<float>{-2, 2}));
}

TEST(Combine, RoundsBFloat16Once) {
  EXPECT_EQ(floats(combined(ReduceOp::sum, bfloats({256, 258}), bfloats({1, 1}))),
            (std::vector<float>{256, 260}));
  EXPECT_EQ(floats(combined(ReduceOp::max, bfloats({-2, 3}), bfloats({1, 2}))),
            (std::vector<float>{1, 3}));
}

TEST(Reduce, RoundsNarrowFloatsAfterTheLastInputOnly) {
  // Neighbouring numbers differ by 2 above 2,048 (float16) and 256 (bfloat16). So rounding after
  // each step would lose the ones.
  EXPECT_EQ(floats(reduced<Half>(ReduceOp::sum, {halves({2048}), halves({1}), halves({1})})),
            std::vector<float>{2050});
  EXPECT_EQ(floats(reduced<BFloat16>(ReduceOp::sum, {bfloats({256}), bfloats({1}), bfloats({1})})),
            std::vector<float>{258});
  // The product (1 + 2^-7)^12 rounds to 1 + 13 * 2^-7. Rounding after each step would give 1 + 12 *
  // 2^-7.
  const std::vector<std::vector<BFloat16>> steps(12, bfloats({1.0078125f}));
  EXPECT_EQ(floats(reduced<BFloat16>(ReduceOp::prod, steps)), std::vector<float>{1.1015625f});
  // E4M3 has steps of 2 above 16, so rounding each sum would lose the ones.
  const F8E4M3 one = f8e4m3_from_float(1);
  const auto sum = reduced<F8E4M3>(ReduceOp::sum, {{f8e4m3_from_float(16)}, {one}, {one}});
  EXPECT_EQ(float_from_f8(sum[0]), 18);
}

TEST(Combine, WidensEveryBlockOfALongHalfTensor) {
  const std::vector<float> ones(2500, 1.0f);
  EXPECT_EQ(floats(combined(ReduceOp::sum, halves(ones), halves(ones))),
            std::vector<float>(2500, 2.0f));
}

TEST(Divide, TruncatesIntegersTowardsZero) {
  EXPECT_EQ(divided<std::int32_t>({7, -7, 8}, 4), (std::vector<std::int32_t>{1, -1, 2}));
  EXPECT_EQ(divided<std::int64_t>({-9}, 2), std::vector<std::int64_t>{-4});
  EXPECT_EQ(divided<std::int8_t>({-128, 127}, 3), (std::vector<std::int8_t>{-42, 42}));
  EXPECT_EQ(divided<std::uint8_t>({255}, 2), std::vector<std::uint8_t>{127});
}

TEST(Divide, TakesMoreRanksThanAByteHolds) {
  EXPECT_EQ(divided<std::int8_t>({100}, 1024), std::vector<std::int8_t>{0});
  EXPECT_EQ(divided<std::uint8_t>({255}, 256), std::vector<std::uint8_t>{0});
}

TEST(Divide, RoundsTheQuotientOnce) {
  EXPECT_EQ(divided<float>({1, 10}, 3), (std::vector<float>{1.0f / 3.0f, 10.0f / 3.0f}));
  EXPECT_EQ(divided<double>({1}, 3), std::vector<double>{1.0 / 3.0});
  EXPECT_EQ(floats(divided(halves({1}), 3)),
            std::vector<float>{float_from_half(half_from_float(1.0f / 3.0f))});
  EXPECT_EQ(floats(divided(bfloats({1}), 3)),
            std::vector<float>{float_from_bfloat16(bfloat16_from_float(1.0f / 3.0f))});
}

template <typename T>
std::vector<T> summed(const std::vector<std::vector<T>>& inputs, const std::vector<double>& scales,
                      std::size_t count) {
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) pointers.push_back(std::as_bytes(std::span(input)).data());
  std::vector<T> out(count);
  weighted_sum(DataTypeOf<T>::value, pointers, scales, std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(WeightedSumOfTypes, RoundsHalvesOnceAtTheEnd) {
  // 2,048 + 1 + 1: rounding after each step would stay at 2,048.
  EXPECT_EQ(floats(summed<Half>({halves({2048}), halves({1}), halves({1})}, {1, 1, 1}, 1)),
            std::vector<float>{2050});
  EXPECT_EQ(floats(summed<BFloat16>({bfloats({256}), bfloats({2})}, {1, 0.5}, 1)),
            std::vector<float>{256});
}

TEST(WeightedSumOfTypes, ComputesDoublesInDouble) {
  EXPECT_EQ(summed<double>({{1.0, 2.0}, {1e-12, 3.0}}, {1.0, 0.5}, 2),
            (std::vector<double>{1.0 + 5e-13, 3.5}));
}

TEST(WeightedSumOfTypes, CrossesBlocksForEveryType) {
  const std::vector<float> ones(2500, 1.0f);
  EXPECT_EQ(summed<float>({ones, ones}, {1.0, 2.0}, 2500), std::vector<float>(2500, 3.0f));
  EXPECT_EQ(floats(summed<Half>({halves(ones), halves(ones)}, {1, 2}, 2500)),
            std::vector<float>(2500, 3.0f));
}

TEST(WeightedSumOfTypes, OfNothingIsZero) {
  EXPECT_EQ(summed<double>({}, {}, 2), (std::vector<double>{0, 0}));
  EXPECT_EQ(floats(summed<Half>({}, {}, 2)), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace leeway::codec
