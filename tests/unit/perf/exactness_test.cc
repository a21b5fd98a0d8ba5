#include "perf/exactness.h"

#include <gtest/gtest.h>

namespace leeway::tools::perf {
namespace {

Settings settings_of(const char* codec, const char* spread_codec = nullptr) {
  Settings settings;
  settings.checks = 1;
  settings.collective.codec = *parse_codec(codec);
  if (spread_codec != nullptr) settings.collective.spread_codec = *parse_codec(spread_codec);
  return settings;
}

constexpr Arrival kAllArrived{.has_faults = false, .is_complete = true};

TEST(KeepsIntegers, WithoutScalesAndWithNearestRounding) {
  for (const char* codec : {"native", "fp32", "fp16", "bf16", "fp16:nearest", "bf16:nearest"})
    EXPECT_TRUE(keeps_integers(*parse_codec(codec))) << codec;
}

TEST(KeepsIntegers, NotThroughRandomBitsOrARotation) {
  for (const char* codec :
       {"fp16:stochastic", "bf16:stochastic", "fp32:rotate", "fp16:rotate", "bf16:rotate"})
    EXPECT_FALSE(keeps_integers(*parse_codec(codec))) << codec;
}

TEST(KeepsIntegers, NotInFewerThanSixteenBits) {
  for (int i = 0; i < kCodecCount; ++i) {
    const auto codec = static_cast<Codec>(i);
    if (codec <= Codec::bf16) continue;
    EXPECT_FALSE(keeps_integers(codec)) << to_string(codec);
  }
}

TEST(IsChecked, ExactDeliveryWhateverTheNetworkDid) {
  EXPECT_TRUE(is_checked(settings_of("native"), kAllArrived));
  EXPECT_TRUE(is_checked(settings_of("native"), {.has_faults = true, .is_complete = true}));
}

TEST(IsChecked, LossyDeliveryOnlyIfNothingCouldBeLost) {
  Settings settings = settings_of("native");
  settings.collective.delivery = best_effort(std::chrono::seconds(1));
  EXPECT_TRUE(is_checked(settings, kAllArrived));
  EXPECT_FALSE(is_checked(settings, {.has_faults = true, .is_complete = true}));
  EXPECT_FALSE(is_checked(settings, {.has_faults = false, .is_complete = false}));
}

TEST(IsChecked, NotWithoutACheckedCall) {
  Settings settings = settings_of("native");
  settings.checks = 0;
  EXPECT_FALSE(is_checked(settings, kAllArrived));
}

TEST(IsChecked, OnlyIfNeitherHalfRounds) {
  EXPECT_TRUE(is_checked(settings_of("bf16", "fp16"), kAllArrived));
  EXPECT_FALSE(is_checked(settings_of("nvfp4"), kAllArrived));
  EXPECT_FALSE(is_checked(settings_of("nvfp4", "bf16"), kAllArrived));
  EXPECT_FALSE(is_checked(settings_of("bf16", "nvfp4"), kAllArrived));
}

}  // namespace
}  // namespace leeway::tools::perf
