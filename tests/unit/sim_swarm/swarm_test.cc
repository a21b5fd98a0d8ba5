#include "swarm/swarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "swarm/draw.h"

namespace leeway::sim::swarm {
namespace {

// Makes runs that take no time. Seeds in `failing` break i3.
RunFunction fake_run(std::set<std::uint64_t> failing) {
  return [failing](const scenario::Scenario& scenario, std::uint64_t seed, const RunOptions&) {
    RunRecord record;
    record.rounds.resize(scenario.rounds());
    record.packets = 10;
    const bool fails = failing.count(seed) > 0;
    record.checks = {
        {"i3", "three", fails ? sim::Verdict::failed : sim::Verdict::passed, 1, fails, "here"}};
    return Result<RunRecord>(record);
  };
}

TEST(Swarm, JudgesEverySeedAndTellsFailuresInOrder) {
  for (const unsigned jobs : {1u, 4u}) {
    const Tally tally = run_swarm({.from = 5,
                                   .count = 100,
                                   .jobs = jobs,
                                   .keep_going = true,
                                   .run = fake_run({3, 17, 42, 105})});
    EXPECT_EQ(tally.seeds, 100u);
    EXPECT_EQ(tally.packets, 1000u);
    ASSERT_EQ(tally.failures.size(), 2u);
    EXPECT_EQ(tally.failures[0].seed, 17u);
    EXPECT_EQ(tally.failures[1].seed, 42u);
    EXPECT_EQ(tally.failures[1].failure.check, "i3");
  }
}

TEST(Swarm, TheLowestFailingSeedIsToldWhateverTheNumberOfThreads) {
  for (const unsigned jobs : {1u, 2u, 8u}) {
    const Tally tally =
        run_swarm({.from = 1, .count = 1000, .jobs = jobs, .run = fake_run({30, 31, 32, 33, 900})});
    ASSERT_EQ(tally.failures.size(), 1u);
    EXPECT_EQ(tally.failures[0].seed, 30u);
    EXPECT_LT(tally.seeds, 900u);
  }
}

TEST(Swarm, PartsTogetherTellWhatTheWholeTells) {
  const RunFunction run = [](const scenario::Scenario& scenario, std::uint64_t seed,
                             const RunOptions& options) {
    auto record = fake_run({17, 42})(scenario, seed, options);
    record->trace_hash = seed * seed;
    return record;
  };
  const Tally whole =
      run_swarm({.from = 5, .count = 100, .jobs = 3, .keep_going = true, .run = run});
  Tally parts;
  for (std::uint64_t i = 0; i < 3; ++i) {
    parts.add(run_swarm(
        {.from = 5 + i, .count = i == 0 ? 34u : 33u, .every = 3, .keep_going = true, .run = run}));
  }
  EXPECT_EQ(parts.seeds, 100u);
  EXPECT_EQ(parts.packets, whole.packets);
  EXPECT_EQ(parts.trace_hash, whole.trace_hash);
  ASSERT_EQ(parts.failures.size(), 2u);
  EXPECT_EQ(parts.failures[0].seed, 17u);

  // The hash must differ if one run differs or two runs change places.
  const RunFunction other = [&](const scenario::Scenario& scenario, std::uint64_t seed,
                                const RunOptions& options) {
    return run(scenario, seed == 7 ? 8 : seed == 8 ? 7 : seed, options);
  };
  EXPECT_NE(run_swarm({.from = 5, .count = 100, .keep_going = true, .run = other}).trace_hash,
            whole.trace_hash);
}

TEST(Swarm, EverySixteenthSeedIsRunTwice) {
  std::atomic<int> runs{0};
  const RunFunction counted = [&](const scenario::Scenario& scenario, std::uint64_t seed,
                                  const RunOptions& options) {
    ++runs;
    return fake_run({})(scenario, seed, options);
  };
  EXPECT_TRUE(run_swarm({.from = 1, .count = 160, .run = counted}).failures.empty());
  EXPECT_EQ(runs, 170);
}

TEST(Swarm, StopsWhenTold) {
  std::atomic<bool> stop{false};
  const Tally tally = run_swarm({.from = 1,
                                 .count = 1000,
                                 .run = fake_run({}),
                                 .stop = &stop,
                                 .progress = [&](const Tally& t) { stop = t.seeds == 20; }});
  EXPECT_EQ(tally.seeds, 20u);
}

// The real core must take all drawn calls, so that no seed is wasted.
TEST(Swarm, DrawnOperationsAreRunAndNotRefused) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    scenario::Scenario scenario = draw_scenario(seed);
    scenario.clear_crash();
    const auto record = sim::run(scenario, seed);
    ASSERT_TRUE(record.ok()) << record.status().c_str();
    EXPECT_GT(record->packets, 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace leeway::sim::swarm
