#include "codec/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace leeway::tools::codecs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<BenchSettings> bench_with(const std::function<void(BenchArguments&)>& change) {
  BenchArguments arguments;
  change(arguments);
  return understand(arguments);
}

Result<InspectOptions> inspect_with(const std::function<void(InspectArguments&)>& change) {
  InspectArguments arguments;
  change(arguments);
  return understand(arguments);
}

TEST(UnderstandBench, DefaultIsEveryFormatInCacheAndInMemory) {
  const auto settings = understand(BenchArguments{});
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  EXPECT_THAT(settings->sizes, ElementsAre(256 << 10, 64 << 20));
  for (int c = static_cast<int>(Codec::fp16); c < static_cast<int>(Codec::automatic); ++c) {
    const auto codec = static_cast<Codec>(c);
    EXPECT_TRUE(std::any_of(settings->codecs.begin(), settings->codecs.end(),
                            [codec](const CodecOptions& o) { return o.codec == codec; }))
        << to_string(codec);
  }
}

TEST(UnderstandBench, CodecsMayHaveSettings) {
  const auto settings = bench_with([](auto& a) { a.codecs = {"nvfp4", "mxfp4:floor:rotate"}; });
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->codecs.size(), 2u);
  EXPECT_EQ(to_string(settings->codecs[1]), "mxfp4:floor:rotate");
}

TEST(UnderstandBench, SizesAscend) {
  EXPECT_THAT(bench_with([](auto& a) {
                a.sizes = {"64M", "8K"};
              })->sizes,
              ElementsAre(8 << 10, 64 << 20));
}

TEST(UnderstandBench, MistakesAreQuoted) {
  const std::vector<std::function<void(BenchArguments&)>> mistakes = {
      [](auto& a) { a.codecs = {"nvfp5"}; },
      [](auto& a) {
        a.codecs = {"bf16", "nvfp5"};
      },
      [](auto& a) { a.codecs = {"nvfp4:nvfp5"}; },
      [](auto& a) {
        a.sizes = {"256K", "nvfp5"};
      },
  };
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const auto settings = bench_with(mistakes[i]);
    ASSERT_FALSE(settings.ok()) << i;
    EXPECT_EQ(settings.status().code(), StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(std::string(settings.status().text()), HasSubstr("nvfp5")) << i;
  }
}

TEST(UnderstandBench, WhatIsNoFormatIsRefused) {
  EXPECT_FALSE(bench_with([](auto& a) { a.codecs = {"automatic"}; }).ok());
  EXPECT_FALSE(bench_with([](auto& a) { a.codecs = {"native"}; }).ok());
}

TEST(UnderstandBench, SizesOutOfRangeAreRefused) {
  EXPECT_FALSE(bench_with([](auto& a) { a.sizes = {"8191"}; }).ok());
  EXPECT_TRUE(bench_with([](auto& a) { a.sizes = {"8192"}; }).ok());
  EXPECT_FALSE(bench_with([](auto& a) { a.sizes = {"5G"}; }).ok());
}

TEST(UnderstandInspect, DefaultsAreUsable) {
  const auto options = understand(InspectArguments{});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->sparsities, ElementsAre(0.5, 0.8, 0.9));
  EXPECT_EQ(options->ranks, 4u);
}

TEST(UnderstandInspect, NumbersOutOfRangeAreRefused) {
  for (const double sparsity : {0.0, 1.0, -0.5, 85.0}) {
    EXPECT_FALSE(inspect_with([=](auto& a) { a.sparsities = {0.5, sparsity}; }).ok()) << sparsity;
  }
  for (const int ranks : {0, -1, 65536}) {
    EXPECT_FALSE(inspect_with([=](auto& a) { a.ranks = ranks; }).ok()) << ranks;
  }
}

}  // namespace
}  // namespace leeway::tools::codecs
