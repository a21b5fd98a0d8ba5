#include "budget/threshold_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "budget/step_gate.h"
#include "step_runner.h"
#include "support/best_threshold.h"

namespace leeway::budget {
namespace {

// Latencies of all ranks, [rank][step][micro-batch].
struct SimulatedGroup {
  std::uint32_t ranks, steps, micro_batches;
  Duration wall;
  std::vector<std::int64_t> ns;

  LatencyTable of_rank(std::uint32_t rank) const {
    const std::size_t each = std::size_t{steps} * micro_batches;
    return {std::span(ns).subspan(rank * each, each), micro_batches};
  }
  std::int64_t end(std::uint32_t rank, std::uint32_t step, std::uint32_t last) const {
    const auto all = of_rank(rank).ns.subspan(step * micro_batches, last + 1);
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }
  ThresholdChoice best(ThresholdSearchOptions options = {}) const {
    options.steps = steps;
    return testing::best_threshold(ns, ranks, micro_batches, wall, options);
  }
};

// Computes the search's results by their definitions, latency by latency, with doubles where the
// search uses integers.
struct Formulas {
  const SimulatedGroup& group;
  std::uint32_t first = 5;

  template <typename Visit>
  void for_ends(std::uint32_t step, Visit&& visit) const {
    for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
      for (std::uint32_t m = 0; m < group.micro_batches; ++m) visit(m, group.end(rank, step, m));
    }
  }
  double compute(std::uint32_t step) const {
    std::int64_t most = 0;
    for_ends(step, [&](std::uint32_t, std::int64_t end) { most = std::max(most, end); });
    return static_cast<double>(most);
  }
  double overhead() const {
    double sum = 0;
    for (std::uint32_t step = 0; step < group.steps; ++step) sum += compute(step);
    return (static_cast<double>(group.wall.count()) - sum) / group.steps;
  }
  double candidate(int index) const {
    double least = 1e300, most = 0;
    for (std::uint32_t step = 0; step < group.steps; ++step) {
      for_ends(step, [&](std::uint32_t m, std::int64_t end) {
        if (m >= first) least = std::min(least, static_cast<double>(end));
        most = std::max(most, static_cast<double>(end));
      });
    }
    return least + (most - least) * index / 199;
  }
  double score(double theta) const {
    double sum = 0;
    for (std::uint32_t step = 0; step < group.steps; ++step) {
      double cut = 0, dropped = 0;
      for_ends(step, [&](std::uint32_t, std::int64_t end) {
        if (static_cast<double>(end) < theta) cut = std::max(cut, static_cast<double>(end));
        if (static_cast<double>(end) >= theta) ++dropped;
      });
      const double raw = compute(step) + overhead();
      const double drop = dropped / (group.ranks * group.micro_batches);
      sum += (1 - drop) / (1 - (compute(step) - cut) / raw) - 1;
    }
    return sum / group.steps;
  }
};

SimulatedGroup unit_vector() {
  SimulatedGroup group{3, 2, 8, Duration(240 * kMs), {}};
  for (const int ms : {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 30, 10, 10, 10, 10,  //
                       10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,  //
                       11, 11, 11, 11, 11, 11, 11, 11, 12, 10, 10, 10, 10, 10, 10, 40}) {
    group.ns.push_back(ms * kMs);
  }
  return group;
}

// Lognormal latencies around 10 ms. Steps take 3 ms longer than their slowest rank.
SimulatedGroup noisy(std::uint32_t ranks, std::uint32_t steps, std::uint32_t micro_batches,
                     unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> factor(0.0, 0.5);
  SimulatedGroup group{ranks, steps, micro_batches, {}, {}};
  for (std::size_t i = 0; i < std::size_t{ranks} * steps * micro_batches; ++i) {
    group.ns.push_back(std::llround(10.0 * kMs * factor(random)));
  }
  std::int64_t wall = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    wall += std::llround(Formulas{group}.compute(step)) + 3 * kMs;
  }
  group.wall = Duration(wall);
  return group;
}

TEST(BestThreshold, HasTheCheckedValues) {
  const ThresholdChoice best = unit_vector().best();
  EXPECT_EQ(best.threshold, Duration(80'120'603));
  EXPECT_NEAR(best.drop_rate, .083333, 0.5e-6);
  EXPECT_NEAR(best.time_cut, .158249, 0.5e-6);
  EXPECT_NEAR(best.effective_speedup, .0950, 0.5e-4);
}

TEST(BestThreshold, ScoresTheCandidatesByTheFormulas) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const SimulatedGroup group = noisy(5, 7, 9, seed);
    const Formulas formulas{group};
    double most = -1;
    for (int i = 0; i < 200; ++i) most = std::max(most, formulas.score(formulas.candidate(i)));
    const ThresholdChoice best = group.best();
    EXPECT_NEAR(best.effective_speedup, most, 1e-9) << seed;
    EXPECT_NEAR(formulas.score(static_cast<double>(best.threshold.count())), most, 1e-9) << seed;
  }
}

TEST(BestThreshold, WithoutVarianceIsNotWorthwhile) {
  SimulatedGroup group{4, 3, 6, Duration(3 * 70 * kMs), std::vector<std::int64_t>(72, 10 * kMs)};
  EXPECT_FALSE(group.best().worthwhile());
}

TEST(BestThreshold, OfStepsThatTakeNoTimeIsNone) {
  SimulatedGroup group{2, 2, 6, Duration(0), std::vector<std::int64_t>(24, 0)};
  EXPECT_EQ(group.best().threshold, Duration(0));
  EXPECT_EQ(group.best().effective_speedup, 0.0);
}

// A clock that missed time may give a wall time shorter than the compute time. That must not become
// a negative overhead.
TEST(BestThreshold, TakesNoNegativeOverhead) {
  SimulatedGroup group = unit_vector();
  group.wall = Duration(1);
  const ThresholdChoice best = group.best();
  group.wall = Duration(200 * kMs);
  EXPECT_EQ(best.effective_speedup, group.best().effective_speedup);
}

TEST(BestThreshold, OfTheLongestTimesDoesNotOverflow) {
  const SimulatedGroup group{
      1, kWindowStepsMax, kMicroBatchesMax, Duration(INT64_MAX),
      std::vector<std::int64_t>(kWindowStepsMax * kMicroBatchesMax, kLatencyMaxNs)};
  const ThresholdChoice best = group.best();
  EXPECT_LE(best.threshold.count(), kLatencyMaxNs * kMicroBatchesMax);
  EXPECT_GT(best.threshold.count(), 0);
  EXPECT_TRUE(std::isfinite(best.effective_speedup));
}

// Searches as a group does: each rank adds its window, and tables are combined as by all-reduces.
ThresholdChoice distributed(const SimulatedGroup& group) {
  std::vector<ThresholdSearch> searches(group.ranks, ThresholdSearch({.steps = group.steps}));
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    searches[rank].add_bounds(group.of_rank(rank), group.wall - Duration(rank));
  }
  const auto combine = [&](auto part, auto operation) {
    for (std::size_t i = 0; i < part(searches[0]).size(); ++i) {
      auto value = part(searches[0])[i];
      for (ThresholdSearch& search : searches) value = operation(value, part(search)[i]);
      for (ThresholdSearch& search : searches) part(search)[i] = value;
    }
  };
  const auto larger = [](auto a, auto b) { return std::max(a, b); };
  combine([](ThresholdSearch& search) { return search.bounds(); }, larger);
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    searches[rank].add_tables(group.of_rank(rank));
  }
  combine([](ThresholdSearch& search) { return search.cuts(); }, larger);
  for (std::size_t i = 0; i < searches[0].sums().size(); ++i) {
    double sum = 0;
    for (ThresholdSearch& search : searches) sum += search.sums()[i];
    for (ThresholdSearch& search : searches) search.sums()[i] = sum;
  }
  const ThresholdChoice first = searches.front().choose();
  const ThresholdChoice last = searches.back().choose();
  EXPECT_EQ(first.threshold, last.threshold);
  EXPECT_EQ(first.effective_speedup, last.effective_speedup);
  return last;
}

TEST(ThresholdSearch, OfRanksThatShareTablesOnlyIsTheSameBitForBit) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const SimulatedGroup group = noisy(17, 11, 12, seed);
    const ThresholdChoice whole = group.best();
    const ThresholdChoice shared = distributed(group);
    EXPECT_EQ(shared.threshold, whole.threshold);
    EXPECT_EQ(shared.drop_rate, whole.drop_rate);
    EXPECT_EQ(shared.time_cut, whole.time_cut);
    EXPECT_EQ(shared.effective_speedup, whole.effective_speedup);
  }
}

TEST(ThresholdSearch, ResetForgetsWhatWasAdded) {
  const SimulatedGroup group = unit_vector();
  ThresholdSearch search({.steps = 2});
  const SimulatedGroup slower = [&] {
    SimulatedGroup copy = group;
    for (std::int64_t& ns : copy.ns) ns *= 3;
    return copy;
  }();
  for (const SimulatedGroup* each : {&slower, &group}) {
    search.reset();
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      search.add_bounds(each->of_rank(rank), each->wall);
    for (std::uint32_t rank = 0; rank < 3; ++rank) search.add_tables(each->of_rank(rank));
  }
  EXPECT_EQ(search.choose().threshold, group.best().threshold);
  EXPECT_EQ(search.choose().drop_rate, group.best().drop_rate);
}

struct FirstCandidate {
  std::uint32_t micro_batches, floor,
      first;  // the first one is the least end of micro-batch `first`
};
constexpr FirstCandidate kFirstCandidates[] = {
    {1, 0, 0},  {2, 0, 1},  {3, 0, 2},  {4, 0, 2},    {5, 0, 3}, {6, 0, 5}, {8, 0, 5},
    {12, 0, 5}, {12, 3, 5}, {12, 7, 6}, {12, 12, 11}, {3, 1, 2}, {5, 5, 4}};

TEST(ThresholdSearchEvaluate, CandidatesRunFromTheFirstMicroBatchsLeastEndToTheLongestStep) {
  for (const auto& [micro_batches, floor, first] : kFirstCandidates) {
    const SimulatedGroup group = noisy(4, 6, micro_batches, 8);
    ThresholdSearch search({.steps = 6, .micro_batches_min = floor});
    std::int64_t least = INT64_MAX, most = 0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      search.add_bounds(group.of_rank(rank), group.wall);
      for (std::uint32_t step = 0; step < 6; ++step) {
        least = std::min(least, group.end(rank, step, first));
        most = std::max(most, group.end(rank, step, micro_batches - 1));
      }
    }
    EXPECT_EQ(search.evaluate(0).threshold.count(), least) << micro_batches << ' ' << floor;
    EXPECT_EQ(search.evaluate(199).threshold.count(), most);
    EXPECT_EQ(search.evaluate(100).threshold.count(), least + (most - least) * 100 / 199);
  }
}

TEST(ThresholdSearchEvaluate, WhatEndsAtTheThresholdIsDropped) {
  const SimulatedGroup group{2, 1, 6, Duration(80 * kMs), std::vector<std::int64_t>(12, 10 * kMs)};
  ThresholdSearch search({.steps = 1});
  for (std::uint32_t rank = 0; rank < 2; ++rank) search.add_bounds(group.of_rank(rank), group.wall);
  for (std::uint32_t rank = 0; rank < 2; ++rank) search.add_tables(group.of_rank(rank));
  EXPECT_EQ(search.evaluate(0).threshold, Duration(60 * kMs));
  EXPECT_NEAR(search.evaluate(0).drop_rate, 1.0 / 6, 1e-15);
  EXPECT_NEAR(search.evaluate(0).time_cut, 10.0 / 80, 1e-15);
}

// The search must predict the steps that gates make, with and without calls of should_stop() inside
// micro-batches.
TEST(ThresholdSearchEvaluate, KnowsHowGatesEndSteps) {
  SimulatedGroup group = noisy(4, 6, 12, 8);
  for (std::int64_t& ns : group.ns) ns = (ns / 2 + 1) * 2;  // halves are exact
  for (const bool asks : {false, true}) {
    ThresholdSearch search({.steps = 6});
    const auto table = [&](std::uint32_t rank) {
      LatencyTable of_rank = group.of_rank(rank);
      of_rank.stop_share_1024 = asks ? 512 : 0;
      return of_rank;
    };
    for (std::uint32_t rank = 0; rank < 4; ++rank) search.add_bounds(table(rank), group.wall);
    for (std::uint32_t rank = 0; rank < 4; ++rank) search.add_tables(table(rank));
    for (std::uint32_t candidate = 0; candidate < 200; candidate += 7) {
      const ThresholdChoice expected = search.evaluate(candidate);
      double completed = 0, time_cut = 0;
      for (std::uint32_t step = 0; step < 6; ++step) {
        Duration slowest{0}, whole{0};
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
          StepGate gate({.micro_batches = 12, .micro_batches_min = 0});
          StepRunner runner{.gate = gate, .checks_in_between = asks};
          // The gate must know a short micro-batch before it may stop a longer one.
          runner.step(std::vector<std::int64_t>(12, 2));
          gate.set_threshold(expected.threshold);
          const Instant start = runner.now;
          completed += runner.step(group.of_rank(rank).ns.subspan(step * 12, 12));
          slowest = std::max(slowest, runner.now - start);
          whole = std::max(whole, Duration(group.end(rank, step, 11)));
        }
        time_cut += static_cast<double>((whole - slowest).count()) /
                    static_cast<double>((whole + search.overhead()).count()) / 6;
      }
      EXPECT_NEAR(expected.drop_rate, 1 - completed / (4 * 6 * 12), 1e-12) << candidate;
      EXPECT_NEAR(expected.time_cut, time_cut, 1e-12) << candidate;
    }
  }
}

TEST(ThresholdSearchChoose, OfNearlyEqualSpeedUpsTakesTheOneThatDropsLeast) {
  const SimulatedGroup group = noisy(4, 6, 12, 8);
  const ThresholdChoice best = group.best();
  const ThresholdChoice content = group.best({.indifference = 0.01});
  EXPECT_GT(content.threshold, best.threshold);
  EXPECT_LT(content.drop_rate, best.drop_rate);
  EXPECT_GT(content.effective_speedup, best.effective_speedup - 0.01);
}

// The only candidate threshold drops the only micro-batch, so the step does no work.
TEST(ThresholdSearchEvaluate, OfAStepThatIsCutAltogetherLosesAll) {
  const SimulatedGroup group{1, 1, 1, Duration(0), {10 * kMs}};
  EXPECT_EQ(group.best().effective_speedup, -1.0);
}

TEST(ThresholdSearchOverhead, IsWhatStepsTakeBeyondTheirSlowestRank) {
  const SimulatedGroup group = unit_vector();
  ThresholdSearch search({.steps = 2});
  for (const std::uint32_t rank : {0, 1, 2}) {  // the wall time of the rank that saw most counts
    search.add_bounds(group.of_rank(rank), group.wall - Duration(rank));
  }
  EXPECT_EQ(search.overhead(), Duration(20 * kMs));
}

TEST(ThresholdSearchOverhead, CountsWhatWasComputedWhereLatenciesAreImputed) {
  const SimulatedGroup group = unit_vector();
  ThresholdSearch search({.steps = 2});
  const std::vector<std::int64_t> computed_ns = {60 * kMs, 70 * kMs};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    LatencyTable table = group.of_rank(rank);
    table.computed_ns = computed_ns;
    search.add_bounds(table, Duration(150 * kMs));
  }
  EXPECT_EQ(search.overhead(), Duration(10 * kMs));
}

}  // namespace
}  // namespace leeway::budget
