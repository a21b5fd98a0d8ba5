#include "run/compute_book.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

constexpr std::int64_t kMs = 1'000'000;

double value_of(const std::vector<Measure>& measures, const std::string& name) {
  for (const Measure& measure : measures) {
    if (measure.name == name) return measure.value;
  }
  return -1;
}

ComputeDraw draw(std::int64_t ms, std::int64_t full_ms, std::uint32_t completed,
                 std::int64_t threshold_ms) {
  return {
      ms * kMs, full_ms * kMs, {completed, 4}, static_cast<double>(completed), threshold_ms * kMs};
}

// Two ranks with 10 ms of communication. One round of warm-up is followed by two with a threshold
// of 30 ms.
class ComputeBookTest : public testing::Test {
 protected:
  void round(std::uint32_t number, std::int64_t begin_ms, const ComputeDraw& first,
             const ComputeDraw& second, std::int64_t end_ms) {
    book_.on_begin(Instant{begin_ms * kMs}, number, first);
    book_.on_begin(Instant{(begin_ms + 1) * kMs}, number, second);
    records_.push_back({.round = number, .begin_ns = begin_ms * kMs, .end_ns = end_ms * kMs});
  }

  const scenario::Scenario scenario_ =
      scenario_of("ranks: 2 compute { drop_compute { micro_batch_ms: 10 } }");
  ComputeBook book_{scenario_};
  std::vector<RoundRecord> records_;
};

TEST_F(ComputeBookTest, CountsRoundsWithAThreshold) {
  round(0, 0, draw(40, 40, 4, 0), draw(80, 80, 4, 0), 91);
  round(1, 91, draw(30, 44, 3, 30), draw(34, 60, 2, 30), 136);
  round(2, 136, draw(36, 36, 4, 30), draw(30, 38, 3, 30), 182);
  const auto measures = book_.measures(records_, nullptr);
  EXPECT_EQ(value_of(measures, "compute.rounds"), 2);
  EXPECT_EQ(value_of(measures, "compute.drop_rate"), 0.25);
  EXPECT_NEAR(value_of(measures, "compute.samples_per_s"), 12 / 0.091, 1e-9);
  EXPECT_EQ(value_of(measures, "compute.step_ms.p50"), 45);
  EXPECT_EQ(value_of(measures, "compute.step_ms.max"), 46);
  EXPECT_EQ(value_of(measures, "compute.threshold_ms"), 30);
  // Rank 1 begins 1 ms late. Without the threshold, the slower rank would compute until 61 ms and
  // not 35 in round 1, and until 39 ms and not 36 in round 2.
  EXPECT_NEAR(value_of(measures, "compute.speedup"), 0.75 * (91 + 26 + 3) / 91, 1e-12);
  EXPECT_NEAR(value_of(measures, "compute.overhead_ms"), 10, 1e-12);
}

TEST_F(ComputeBookTest, CountsAllRoundsWhereNoneHasAThreshold) {
  round(0, 0, draw(40, 40, 4, 0), draw(80, 80, 4, 0), 91);
  const auto measures = book_.measures(records_, nullptr);
  EXPECT_EQ(value_of(measures, "compute.rounds"), 1);
  EXPECT_EQ(value_of(measures, "compute.speedup"), 1);
  EXPECT_TRUE(std::isnan(value_of(measures, "compute.threshold_ms")));
  EXPECT_EQ(value_of(measures, "compute.speedup_predicted"), 1);
  EXPECT_EQ(value_of(measures, "compute.drop_rate_predicted"), 0);
  EXPECT_GT(value_of(measures, "compute.speedup_best_predicted"), 0);
}

TEST_F(ComputeBookTest, TellsWhatTheSearchExpected) {
  round(0, 0, draw(40, 40, 4, 0), draw(80, 80, 4, 0), 91);
  EXPECT_EQ(value_of(book_.measures(records_, nullptr), "compute.speedup_searched"), -1);
  const budget::ThresholdChoice found{.effective_speedup = 0.25};
  EXPECT_EQ(value_of(book_.measures(records_, &found), "compute.speedup_searched"), 1.25);
}

TEST_F(ComputeBookTest, HasNothingToSayOfNoRounds) {
  EXPECT_TRUE(book_.measures({}, nullptr).empty());
}

// The paper's model assumes that all workers are alike, so there is no prediction here.
TEST(ComputeBookPredictions, AreOfOneKindOfRankOnly) {
  for (const char* text :
       {"ranks: 2 compute { drop_compute { micro_batch_ms: 10 } } slow { rank: 1 "
        "factor: 2 }",
        "ranks: 2 compute { ranks: '0' drop_compute { micro_batch_ms: 10 } }"}) {
    const scenario::Scenario scenario = scenario_of(text);
    ComputeBook book(scenario);
    book.on_begin(Instant{}, 0, draw(30, 40, 3, 30));
    const auto measures = book.measures({{.end_ns = 50 * kMs}}, nullptr);
    EXPECT_EQ(value_of(measures, "compute.drop_rate"), 0.25);
    EXPECT_EQ(value_of(measures, "compute.speedup_best_predicted"), -1) << text;
  }
}

}  // namespace
}  // namespace leeway::sim
