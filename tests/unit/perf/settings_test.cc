#include "perf/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace leeway::tools::perf {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Result<Settings> understand_with(const std::function<void(Arguments&)>& change) {
  Arguments arguments;
  change(arguments);
  return understand(arguments);
}

TEST(Understand, DefaultsAreAnExactFloatSum) {
  const auto settings = understand(Arguments{});
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  EXPECT_EQ(settings->operation, Operation::all_reduce);
  EXPECT_EQ(settings->dtype, DataType::f32);
  EXPECT_EQ(settings->sizes.front(), 4096u);
  EXPECT_EQ(settings->sizes.back(), 16777216u);
  EXPECT_EQ(settings->collective.delivery.kind, Delivery::Kind::exact);
  EXPECT_EQ(settings->collective.delivery.deadline, kExactDeadline);
  EXPECT_FALSE(settings->lossy());
}

TEST(Understand, BoundedDeliveryCarriesItsLoss) {
  const auto settings = understand_with([](Arguments& a) { a.delivery = "bounded:0.05"; });
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->collective.delivery.kind, Delivery::Kind::bounded);
  EXPECT_EQ(settings->collective.delivery.loss_max, 0.05);
  EXPECT_EQ(settings->collective.delivery.deadline, kLossyDeadline);
  EXPECT_TRUE(settings->lossy());
}

TEST(Understand, DeadlineIsInMilliseconds) {
  const auto settings = understand_with([](Arguments& a) {
    a.delivery = "best_effort";
    a.deadline_ms = 2.5;
  });
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->collective.delivery.deadline, 2500us);
}

TEST(Understand, LossySpreadAloneMakesTheRunLossy) {
  const auto settings = understand_with([](Arguments& a) { a.spread = "best_effort"; });
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->lossy());
}

TEST(Understand, CodecsAreInTextForm) {
  const auto settings = understand_with([](Arguments& a) {
    a.codec = "mxfp4:floor:rotate";
    a.spread_codec = "bf16";
  });
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  EXPECT_EQ(to_string(settings->collective.codec), "mxfp4:floor:rotate");
  EXPECT_EQ(settings->spread_codec().codec, Codec::bf16);
}

TEST(Understand, SpreadCodecIsThatOfTheReduceHalfUnlessGiven) {
  const auto settings = understand_with([](Arguments& a) { a.codec = "luq:draws=2"; });
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->collective.spread_codec.has_value());
  EXPECT_EQ(settings->spread_codec(), settings->collective.codec);
}

TEST(Understand, SpreadCodecNeedsASpreadHalf) {
  const auto settings = understand_with([](Arguments& a) {
    a.operation = "reduce_scatter";
    a.spread_codec = "bf16";
  });
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(settings.status().text()), HasSubstr("--spread-codec"));
}

TEST(Understand, TypesHaveTwoSpellings) {
  EXPECT_EQ(understand_with([](Arguments& a) { a.dtype = "bfloat16"; })->dtype, DataType::bf16);
  EXPECT_EQ(understand_with([](Arguments& a) { a.dtype = "bf16"; })->dtype, DataType::bf16);
  EXPECT_EQ(understand_with([](Arguments& a) { a.dtype = "half"; })->dtype, DataType::f16);
}

TEST(Understand, WrongWordsAreQuoted) {
  const std::vector<std::function<void(Arguments&)>> mistakes = {
      [](Arguments& a) { a.operation = "wrong_word"; },
      [](Arguments& a) { a.dtype = "wrong_word"; },
      [](Arguments& a) { a.redop = "wrong_word"; },
      [](Arguments& a) { a.codec = "wrong_word"; },
      [](Arguments& a) { a.codec = "nvfp4:wrong_word"; },
      [](Arguments& a) { a.spread_codec = "wrong_word"; },
      [](Arguments& a) { a.estimator = "wrong_word"; },
      [](Arguments& a) { a.delivery = "wrong_word"; },
      [](Arguments& a) { a.spread = "wrong_word"; },
      [](Arguments& a) { a.bytes_min = "wrong_word"; },
      [](Arguments& a) { a.bytes_max = "wrong_word"; },
  };
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const auto settings = understand_with(mistakes[i]);
    ASSERT_FALSE(settings.ok()) << i;
    EXPECT_EQ(settings.status().code(), StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(std::string(settings.status().text()), HasSubstr("wrong_word")) << i;
  }
}

TEST(Understand, BoundedNeedsAFraction) {
  for (const char* text : {"bounded", "bounded:", "bounded:x", "bounded:1.5", "bounded:-0.1",
                           "bounded:0.1x", "bounded:nan"}) {
    EXPECT_FALSE(understand_with([text](Arguments& a) { a.delivery = text; }).ok()) << text;
  }
}

TEST(Understand, NumbersOutOfRangeAreRefused) {
  const std::vector<std::function<void(Arguments&)>> mistakes = {
      [](Arguments& a) { a.ranks = -1; },  [](Arguments& a) { a.iterations = 0; },
      [](Arguments& a) { a.warmup = -1; }, [](Arguments& a) { a.checks = -1; },
      [](Arguments& a) { a.root = -1; },   [](Arguments& a) { a.root = 65535; },
      [](Arguments& a) { a.loss = 1.01; }, [](Arguments& a) { a.loss = -0.01; },
      [](Arguments& a) { a.burst = 0.5; }, [](Arguments& a) { a.deadline_ms = -1; },
      [](Arguments& a) { a.factor = 1; },  [](Arguments& a) { a.bytes_min = "32M"; }};
  for (std::size_t i = 0; i < mistakes.size(); ++i)
    EXPECT_FALSE(understand_with(mistakes[i]).ok()) << i;
}

}  // namespace
}  // namespace leeway::tools::perf
