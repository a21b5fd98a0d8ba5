// The one-pass weighted sum must give the bits of the step-by-step sum, on every instruction set.
#include "codec/weighted_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

std::vector<std::vector<float>> contributions(std::size_t inputs, std::size_t count) {
  std::vector<std::vector<float>> values(inputs, std::vector<float>(count));
  for (std::size_t j = 0; j < inputs; ++j) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t draw =
          keyed_hash(11, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), 0, 0);
      values[j][i] = static_cast<float>(to_unit(draw) * 20 - 10);
    }
  }
  return values;
}

MutableByteSpan bytes_of(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

std::vector<float> some_scales(std::size_t inputs) {
  std::vector<float> scales(inputs);
  for (std::size_t j = 0; j < inputs; ++j) scales[j] = 1.0f / static_cast<float>(3 + j);
  return scales;
}

std::vector<const std::byte*> pointers(const std::vector<std::vector<float>>& values) {
  std::vector<const std::byte*> result;
  for (const auto& v : values) result.push_back(std::as_bytes(std::span(v)).data());
  return result;
}

std::vector<float> step_by_step(const std::vector<std::vector<float>>& values,
                                const std::vector<float>& scales, std::size_t count) {
  const Format& format = format_of(Codec::fp32, DataType::f32);
  std::vector<float> sum(count);
  for (std::size_t j = 0; j < values.size(); ++j) {
    const ByteSpan in = std::as_bytes(std::span(values[j]).first(count));
    j == 0 ? accumulate_first(format, in, scales[j], sum) : accumulate(format, in, scales[j], sum);
  }
  return sum;
}

void expect_same_bits(std::span<const float> a, std::span<const float> b) {
  ASSERT_TRUE(std::ranges::equal(std::as_bytes(a), std::as_bytes(b)));
}

TEST(WeightedSum, EqualsAccumulatingStepByStepAtEverySize) {
  for_each_supported_target([] {
    for (std::size_t count = 0; count <= 257; ++count) {
      const std::size_t inputs = 1 + count % 5;
      const auto values = contributions(inputs, count);
      for (const auto& scales : {some_scales(inputs), std::vector<float>(inputs, 1.0f)}) {
        std::vector<float> out(count);
        weighted_sum_floats(pointers(values), scales, bytes_of(out));
        expect_same_bits(out, step_by_step(values, scales, count));
      }
    }
  });
}

TEST(WeightedSum, TakesAnyNumberOfInputs) {
  for (const std::size_t inputs : {1, 2, 15, 16, 17, 64, 257}) {
    const auto values = contributions(inputs, 100);
    const auto scales = some_scales(inputs);
    std::vector<float> out(100);
    weighted_sum_floats(pointers(values), scales, bytes_of(out));
    expect_same_bits(out, step_by_step(values, scales, 100));
  }
}

TEST(WeightedSum, MayWriteOverAnyOfItsInputs) {
  for_each_supported_target([] {
    for (std::size_t alias = 0; alias < 4; ++alias) {
      auto values = contributions(4, 201);
      const auto scales = some_scales(4);
      const auto expected = step_by_step(values, scales, 201);
      weighted_sum_floats(pointers(values), scales, bytes_of(values[alias]));
      expect_same_bits(values[alias], expected);
    }
  });
}

TEST(WeightedSum, ReadsInputsAtAnyByteAddress) {
  for_each_supported_target([] {
    const auto values = contributions(3, 131);
    const auto scales = some_scales(3);
    for (std::size_t offset = 0; offset < 64; ++offset) {
      std::vector<std::vector<std::byte>> memory(3,
                                                 std::vector<std::byte>(131 * sizeof(float) + 64));
      std::vector<const std::byte*> inputs;
      for (std::size_t j = 0; j < 3; ++j) {
        std::memcpy(&memory[j][offset], values[j].data(), 131 * sizeof(float));
        inputs.push_back(&memory[j][offset]);
      }
      std::vector<float> out(131);
      weighted_sum_floats(inputs, scales, bytes_of(out));
      expect_same_bits(out, step_by_step(values, scales, 131));
    }
  });
}

TEST(WeightedSumChecked, HasTheSameBitsAndSeesAnyInputThatIsNotFinite) {
  for_each_supported_target([] {
    for (std::size_t count = 1; count <= 200; count += 7) {
      auto values = contributions(3, count);
      for (const auto& scales : {some_scales(3), std::vector<float>(3, 1.0f)}) {
        std::vector<float> out(count);
        EXPECT_TRUE(weighted_sum_floats(pointers(values), scales, bytes_of(out), true));
        expect_same_bits(out, step_by_step(values, scales, count));
        for (std::size_t i = 0; i < count; ++i) {
          const float before = std::exchange(values[i % 3][i], i % 2 == 0 ? INFINITY : NAN);
          EXPECT_FALSE(weighted_sum_floats(pointers(values), scales, bytes_of(out), true));
          EXPECT_TRUE(weighted_sum_floats(pointers(values), scales, bytes_of(out), false));
          values[i % 3][i] = before;
        }
      }
    }
  });
}

TEST(WeightedSum, OfNothingIsZero) {
  std::vector<float> out(5, 3.0f);
  weighted_sum_floats({}, {}, bytes_of(out));
  EXPECT_EQ(out, std::vector<float>(5, 0.0f));
}

}  // namespace
}  // namespace leeway::codec
