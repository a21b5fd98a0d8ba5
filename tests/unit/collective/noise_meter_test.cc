#include "collective/noise_meter.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace leeway::collective {
namespace {

std::uint32_t sampled(const NoiseMeter& meter, std::uint32_t packets) {
  std::uint32_t count = 0;
  for (std::uint32_t index = 0; index < packets; ++index) count += meter.samples(index, packets);
  return count;
}

TEST(NoiseMeter, SamplesAllOfAFewPacketsAndEveryFourthEighthOr32ndOfMore) {
  const NoiseMeter meter;
  EXPECT_EQ(sampled(meter, 1), 1u);
  EXPECT_EQ(sampled(meter, 7), 7u);
  EXPECT_EQ(sampled(meter, 8), 2u);
  EXPECT_EQ(sampled(meter, 16), 2u);
  EXPECT_EQ(sampled(meter, 56), 7u);
  EXPECT_EQ(sampled(meter, 64), 2u);
  EXPECT_EQ(sampled(meter, 320), 10u);
}

TEST(NoiseMeter, MeasuresEveryPlaceEquallyOftenOverOperations) {
  for (const std::uint32_t packets : {5u, 12u, 100u, 1000u}) {
    NoiseMeter meter;
    std::vector<int> counts(packets);
    for (int operation = 0; operation < 64; ++operation) {
      meter.reset();
      for (std::uint32_t index = 0; index < packets; ++index)
        counts[index] += meter.samples(index, packets);
    }
    for (const int count : counts) EXPECT_EQ(count, counts[0]) << packets;
    EXPECT_GT(counts[0], 0);
  }
}

TEST(NoiseMeter, MeansArePerElementAndPerUnitOfWork) {
  NoiseMeter meter;
  EXPECT_TRUE(meter.empty());
  meter.add_result(std::array{1.0f, 3.0f}, 0.5, {.sum = 1.0});  // 0.25 and 2.25
  meter.add_result(std::array{2.0f}, 1.0, {.sum = 0.25});       // 4
  meter.add_weights({.sum = 0.5}, 1);
  meter.add_weights({.sum = 0.25}, 3);
  meter.add_own(std::array{4.0f, 0.0f}, 0.25);                                 // 1 and 0
  meter.add_control(std::array{4.0f, 0.0f}, 0.25, std::array{1.0f, 2.0f}, 2);  // 1 and 16
  EXPECT_FALSE(meter.empty());
  const auto statistics = meter.complete({.ranks = 3});
  EXPECT_DOUBLE_EQ(statistics.result_mean_square, 6.5 / 3);
  EXPECT_DOUBLE_EQ(statistics.contribution_mean_square, 0.5);
  EXPECT_EQ(statistics.quantisation_variance, 0.0);
  EXPECT_EQ(statistics.ranks, 3u);
  EXPECT_DOUBLE_EQ(statistics.control_mean_square, 8.5);
  EXPECT_DOUBLE_EQ(statistics.measured_weights.sum, 0.75);
  EXPECT_DOUBLE_EQ(statistics.weights.sum, 0.3125);
}

TEST(NoiseMeter, EncodingErrorsAreThoseOfTheReceiver) {
  const codec::Format format = codec::format_of(Codec::bf16, DataType::f32);
  const std::array values{1.0f + 0x1p-9f, 2.0f};  // the first loses 2^-9
  std::array<std::byte, 4> encoded{};
  codec::encode(format, values, {}, encoded);
  NoiseMeter meter;
  meter.add_encoded(format, {}, values, encoded, 2.0);
  meter.add_spread(format, {}, values, encoded, 1.0);
  const auto statistics = meter.complete({});
  EXPECT_DOUBLE_EQ(statistics.quantisation_variance, 4 * 0x1p-18 / 2);
  EXPECT_DOUBLE_EQ(statistics.spread_variance, 0x1p-18 / 2);
}

TEST(NoiseMeter, KnowsNothingWithoutUnitsOfItsOwn) {
  NoiseMeter meter;
  meter.add_result(std::array{1.0f}, 1.0, {});
  EXPECT_TRUE(meter.empty());
}

TEST(NoiseMeter, ForgetsWithReset) {
  NoiseMeter meter;
  meter.add_result(std::array{1.0f}, 1.0, {});
  meter.add_own(std::array{1.0f}, 1.0);
  EXPECT_FALSE(meter.empty());
  meter.reset();
  EXPECT_TRUE(meter.empty());
  EXPECT_EQ(meter.complete({}).result_mean_square, 0.0);
}

}  // namespace
}  // namespace leeway::collective
