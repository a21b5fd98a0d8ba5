#include "train/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace leeway::tools::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

StragglerModel model_of(const char* text) {
  const auto model = parse_straggler(text);
  EXPECT_TRUE(model.ok()) << model.status().c_str();
  return *model;
}

// Returns sorted delays of many steps in milliseconds.
std::vector<double> delays_ms(const char* text, int rank = 0) {
  const Straggler straggler(model_of(text), 1, rank);
  std::vector<double> delays;
  for (std::uint64_t step = 0; step < 20'000; ++step)
    delays.push_back(std::chrono::duration<double, std::milli>(straggler.delay(step, 0)).count());
  std::ranges::sort(delays);
  return delays;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

class ParseStraggler : public testing::TestWithParam<const char*> {};
TEST_P(ParseStraggler, TakesWhatToStringGives) {
  EXPECT_EQ(to_string(model_of(GetParam())), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Models, ParseStraggler,
                         testing::Values("none", "constant:5", "lognormal:2.5:0.75", "paper:10:1",
                                         "lognormal:2:1,slow:3:1.5"));

TEST(ParseStraggler, ShapeIsOneUnlessGiven) {
  EXPECT_EQ(model_of("lognormal:4"), model_of("lognormal:4:1"));
  EXPECT_EQ(model_of("paper:4"), model_of("paper:4:1"));
}

class ParseStragglerRefuses : public testing::TestWithParam<const char*> {};
TEST_P(ParseStragglerRefuses, InOneLineThatListsTheModels) {
  const auto model = parse_straggler(GetParam());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(model.status().text()), HasSubstr("lognormal:MEDIAN_MS[:SIGMA up to 3]"));
  EXPECT_THAT(std::string(model.status().text()), HasSubstr("slow:RANK:FACTOR"));
}
INSTANTIATE_TEST_SUITE_P(Texts, ParseStragglerRefuses,
                         testing::Values("", "weibull:1", "lognormal", "lognormal:", "lognormal:-1",
                                         "lognormal:nan", "lognormal:1:4", "lognormal:1:1:1",
                                         "constant:1:2", "paper:1ms", "none,slow:0:2",
                                         "paper:1,slow:0", "paper:1,slow:-1:2",
                                         "paper:1,late:0:2"));

TEST(StragglerDelay, OfNoneIsNothing) {
  EXPECT_EQ(Straggler(StragglerModel{}, 1, 0).delay(3, 2), Duration(0));
}

TEST(StragglerDelay, OfAConstantIsThat) {
  const Straggler straggler(model_of("constant:5"), 1, 2);
  EXPECT_EQ(straggler.delay(0, 0), 5ms);
  EXPECT_EQ(straggler.delay(9, 7), 5ms);
}

TEST(StragglerDelay, OfALognormalHasItsMedianAndMean) {
  const auto delays = delays_ms("lognormal:4:0.5");
  EXPECT_NEAR(delays[delays.size() / 2], 4.0, 0.08);
  EXPECT_NEAR(mean_of(delays), 4.0 * std::exp(0.125), 0.08);
  // A standard normal variable exceeds 2 with a probability of 2.275 %.
  const auto beyond = delays.end() - std::ranges::upper_bound(delays, 4.0 * std::exp(1.0));
  EXPECT_NEAR(static_cast<double>(beyond) / static_cast<double>(delays.size()), 0.02275, 0.005);
}

TEST(StragglerDelay, OfThePaperProlongsByHalfOnAverageAndSixfoldAtMost) {
  const auto delays = delays_ms("paper:10");
  EXPECT_NEAR(mean_of(delays), 15.0, 0.2);
  // The delay is 10 ms * (1 + l / 2 / 87.634), with the paper's l of 1 to 999 and mean 87.634.
  EXPECT_GE(delays.front(), 10.0 * (1 + 0.5 / 87.635));
  EXPECT_LE(delays.back(), 10.0 * (1 + 0.5 * 999 / 87.633));
  // l / 87.634 has variance 1.35, and the delay has (10 / 2)^2 of that.
  double squares = 0;
  for (const double delay : delays) squares += (delay - 15.0) * (delay - 15.0);
  EXPECT_NEAR(squares / static_cast<double>(delays.size()), 25 * 1.35, 2.0);
}

TEST(StragglerDelay, DependsOnSeedStepRankAndMicroBatchAlone) {
  const auto model = model_of("lognormal:4");
  const Duration delay = Straggler(model, 1, 2).delay(3, 4);
  EXPECT_EQ(Straggler(model, 1, 2).delay(3, 4), delay);
  EXPECT_NE(Straggler(model, 2, 2).delay(3, 4), delay);
  EXPECT_NE(Straggler(model, 1, 3).delay(3, 4), delay);
  EXPECT_NE(Straggler(model, 1, 2).delay(4, 4), delay);
  EXPECT_NE(Straggler(model, 1, 2).delay(3, 5), delay);
}

TEST(StragglerDelay, OfASlowRankIsThatMuchLonger) {
  const auto usual = model_of("lognormal:4");
  const auto slow = model_of("lognormal:4,slow:1:3");
  EXPECT_EQ(Straggler(slow, 1, 0).delay(5, 6), Straggler(usual, 1, 0).delay(5, 6));
  EXPECT_NEAR(static_cast<double>(Straggler(slow, 1, 1).delay(5, 6).count()),
              3.0 * static_cast<double>(Straggler(usual, 1, 1).delay(5, 6).count()), 3.0);
}

TEST(StragglerDelay, IsNeverLongerThanAMinute) {
  const Straggler straggler(model_of("constant:60000,slow:0:100"), 1, 0);
  EXPECT_EQ(straggler.delay(0, 0), 60s);
}

}  // namespace
}  // namespace leeway::tools::train
