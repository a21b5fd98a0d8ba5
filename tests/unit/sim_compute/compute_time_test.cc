#include "compute/compute_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <vector>

#include "scenario/parse.h"
#include "support/time_units.h"

namespace leeway::sim {
namespace {

using testing::kMs;

scenario::Scenario scenario_of(const std::string& text) {
  auto parsed = scenario::parse_text(text, "a.txtpb");
  EXPECT_TRUE(parsed.ok()) << parsed.status().text();
  return parsed.ok() ? *parsed : scenario::Scenario();
}
ComputeTimes times_of(const std::string& text, std::uint64_t seed = 1) {
  auto times = ComputeTimes::make(scenario_of(text), seed);
  EXPECT_TRUE(times.ok()) << times.status().text();
  return std::move(*times);
}
std::vector<std::int64_t> draws(ComputeTimes& times, std::uint32_t rank, std::uint32_t rounds) {
  std::vector<std::int64_t> ns;
  for (std::uint32_t round = 0; round < rounds; ++round)
    ns.push_back(times.draw(Instant{}, rank, round).ns);
  return ns;
}

TEST(ComputeTimes, PassNoTimeUnlessTold) {
  ComputeTimes times = times_of("ranks: 2");
  EXPECT_EQ(times.draw(Instant{}, 1, 0).ns, 0);
  EXPECT_EQ(times.draw(Instant{}, 1, 0).weight, 1);
}

TEST(ComputeTimes, ALaterEntryReplacesAnEarlierOneForItsRanks) {
  ComputeTimes times =
      times_of("ranks: 3 compute { constant_ms: 5 } compute { ranks: \"1\" constant_ms: 0.25 }");
  EXPECT_EQ(times.draw(Instant{}, 0, 0).ns, 5 * kMs);
  EXPECT_EQ(times.draw(Instant{}, 1, 0).ns, kMs / 4);
  EXPECT_EQ(times.draw(Instant{}, 2, 0).ns, 5 * kMs);
}

TEST(ComputeTimes, PeriodicTakesLongerFromItsOffsetOnEveryNthRound) {
  ComputeTimes times =
      times_of("compute { periodic { base_ms: 1 extra_ms: 9 every: 3 offset: 4 } }");
  EXPECT_EQ(draws(times, 0, 8),
            (std::vector<std::int64_t>{kMs, kMs, kMs, kMs, 10 * kMs, kMs, kMs, 10 * kMs}));
}

TEST(ComputeTimes, LognormalHasItsMedianAndDeviation) {
  ComputeTimes times = times_of("compute { lognormal { median_ms: 20 sigma: 0.5 } }");
  constexpr std::uint32_t kRounds = 100'000;
  double sum = 0;
  double square = 0;
  for (const std::int64_t ns : draws(times, 2, kRounds)) {
    const double log = std::log(static_cast<double>(ns) / (20 * kMs));
    sum += log;
    square += log * log;
  }
  EXPECT_NEAR(sum / kRounds, 0, 4 * 0.5 / std::sqrt(kRounds));
  EXPECT_NEAR(square / kRounds, 0.25, 4 * 0.25 * std::sqrt(2.0 / kRounds));
}

TEST(ComputeTimes, HeavyTailIsParetos) {
  ComputeTimes times = times_of("compute { heavy_tail { min_ms: 10 alpha: 2 } }");
  constexpr std::uint32_t kRounds = 100'000;
  const auto ns = draws(times, 0, kRounds);
  EXPECT_GE(*std::min_element(ns.begin(), ns.end()), 10 * kMs);
  // A time exceeds 10 minima with a probability of 1 %.
  const auto above = std::count_if(ns.begin(), ns.end(), [](auto t) { return t > 100 * kMs; });
  EXPECT_NEAR(static_cast<double>(above), 1000, 4 * std::sqrt(990.0));
}

TEST(ComputeTimes, TraceIsRepeatedAtItsEnd) {
  const std::string path = ::testing::TempDir() + "compute_times_trace.txt";
  std::ofstream(path) << "1\n2\n3\n";
  ComputeTimes times = times_of("compute { trace: \"" + path + "\" }");
  EXPECT_EQ(draws(times, 3, 5), (std::vector<std::int64_t>{kMs, 2 * kMs, 3 * kMs, kMs, 2 * kMs}));
  std::remove(path.c_str());
}

TEST(ComputeTimes, ATraceThatCannotBeReadIsAnError) {
  scenario::Scenario scenario;
  scenario.add_compute()->set_trace("/nowhere/t.txt");
  EXPECT_EQ(ComputeTimes::make(scenario, 1).status().text(),
            std::string("/nowhere/t.txt: cannot be read: No such file or directory"));
}

// Contributions of both kinds of rank are averaged, so their weights must be comparable.
TEST(ComputeTimes, ARankThatWorksInOnePieceWeighsAsMuchAsAllMicroBatches) {
  ComputeTimes times = times_of(
      "compute { drop_compute { micro_batch_ms: 10 micro_batches: 8 factor: 0 threshold_ms: 55 } }"
      "compute { ranks: '1' constant_ms: 3 }");
  EXPECT_EQ(times.draw(Instant{}, 0, 0).weight, 6);
  const ComputeDraw whole = times.draw(Instant{}, 1, 0);
  EXPECT_EQ(whole.weight, 8);
  EXPECT_EQ(whole.micro_batches.completed, 8u);
  EXPECT_EQ(whole.full_ns, 3 * kMs);
  EXPECT_EQ(whole.threshold_ns, 0);
}

TEST(ComputeTimes, AnEntryWithoutMicroBatchesReplacesOneWithThem) {
  ComputeTimes times = times_of(
      "compute { drop_compute { micro_batch_ms: 10 } } compute { ranks: '1' constant_ms: 3 }"
      "compute { ranks: '2' drop_compute { micro_batch_ms: 1 micro_batches: 2 factor: 0 } }");
  EXPECT_EQ(times.draw(Instant{}, 1, 0).ns, 3 * kMs);
  EXPECT_EQ(times.draw(Instant{}, 2, 0).ns, 2 * kMs);
  EXPECT_GE(times.draw(Instant{}, 0, 0).ns, 120 * kMs);
}

TEST(ComputeTimes, SlowRanksTakeLongerInTheirRoundsOnly) {
  ComputeTimes times = times_of(
      "compute { constant_ms: 2 } slow { rank: 1 factor: 3 from_round: 1 to_round: 3 }"
      "slow { rank: 1 factor: 1.5 from_round: 3 }");
  EXPECT_EQ(draws(times, 1, 5),
            (std::vector<std::int64_t>{2 * kMs, 6 * kMs, 6 * kMs, 3 * kMs, 3 * kMs}));
  EXPECT_EQ(draws(times, 0, 2), (std::vector<std::int64_t>{2 * kMs, 2 * kMs}));
}

TEST(ComputeTimes, EndAtTheLongestTimeInsteadOfOverflowing) {
  ComputeTimes times =
      times_of("compute { heavy_tail { min_ms: 1e9 alpha: 0.1 } } slow { rank: 0 factor: 1e6 }");
  EXPECT_EQ(times.draw(Instant{}, 0, 0).ns, std::int64_t{1} << 56);
}

TEST(ComputeTimes, OfARankDoNotDependOnOthers) {
  ComputeTimes both = times_of("compute { lognormal { median_ms: 20 } }");
  ComputeTimes one = times_of("compute { ranks: \"2\" lognormal { median_ms: 20 } }");
  draws(both, 0, 7);
  EXPECT_EQ(draws(both, 2, 20), draws(one, 2, 20));
}

TEST(ComputeTimes, DifferBetweenRanksAndSeeds) {
  const std::string text = "compute { lognormal { median_ms: 20 } }";
  ComputeTimes first = times_of(text, 1);
  ComputeTimes second = times_of(text, 2);
  const auto draws_of_0 = draws(first, 0, 5);
  EXPECT_NE(draws_of_0, draws(first, 1, 5));
  EXPECT_NE(draws_of_0, draws(second, 0, 5));
}

// If these values change, every recorded run becomes invalid.
TEST(ComputeTimes, GiveTheGoldenDraws) {
  ComputeTimes times = times_of(
      "compute { ranks: \"0\" lognormal { median_ms: 20 } }"
      "compute { ranks: \"1\" heavy_tail { min_ms: 20 } }"
      "compute { ranks: \"2\" drop_compute { micro_batch_ms: 20 threshold_ms: 250 } }");
  EXPECT_EQ(draws(times, 0, 2), (std::vector<std::int64_t>{12'747'569, 23'031'306}));
  EXPECT_EQ(draws(times, 1, 2), (std::vector<std::int64_t>{30'226'722, 99'412'181}));
  EXPECT_EQ(draws(times, 2, 2), (std::vector<std::int64_t>{278'736'562, 278'416'595}));
}

}  // namespace
}  // namespace leeway::sim
