#include "train/group_sums.h"

#include <gtest/gtest.h>

namespace leeway::tools::train {
namespace {

Traffic some_traffic() {
  Traffic traffic;
  traffic.packets_expected = 1000;
  traffic.packets_arrived_first = 900;
  traffic.bytes_sent = 5'000'000'000'000ULL;
  traffic.elements_untouched = 3;
  traffic.deadline_cuts = 2;
  return traffic;
}

DriftReport some_drift() {
  DriftReport drift;
  drift.pair_measured = 1.0;
  drift.pair_predicted = 2.0;
  drift.pair_predicted_gap = 3.0;
  drift.owner_measured = 4.0;
  drift.owner_predicted = 5.0;
  drift.age_mean = 0.25;
  drift.blocks_refreshed = 6;
  drift.age_histogram = {80, 15, 5};
  return drift;
}

constexpr estimate::NoiseEstimate kSomeNoise{.gradient_mean_square = 1.0,
                                             .dispersion = 2.0,
                                             .quantisation_variance = 3.0,
                                             .loss_variance = 4.0,
                                             .gradient_error = 0.5};

GroupSums sum_of(const GroupSums& a, const GroupSums& b) {
  GroupSums sum;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = a.values[i] + b.values[i];
  return sum;
}

TEST(GroupSumsStore, AddsTrafficOverRanks) {
  Traffic other = some_traffic();
  other.packets_expected = 3000;
  other.packets_arrived_first = 2900;
  RunResult result;
  sum_of(GroupSums::of({some_traffic(), {}, {}}), GroupSums::of({other, {}, {}}))
      .store(2, false, result);
  EXPECT_NEAR(result.loss_observed, 0.05, 1e-12);
  EXPECT_EQ(result.bytes_sent, 10'000'000'000'000ULL);
  EXPECT_EQ(result.elements_untouched, 6u);
  EXPECT_EQ(result.deadline_cuts, 4u);
  EXPECT_FALSE(result.drift.has_value());
  EXPECT_FALSE(result.noise.has_value());
}

TEST(GroupSumsStore, AveragesDriftOverRanks) {
  DriftReport other = some_drift();
  other.pair_measured = 2.0;
  other.age_mean = 0.75;
  RunResult result;
  sum_of(GroupSums::of({{}, {}, some_drift()}), GroupSums::of({{}, {}, other}))
      .store(2, true, result);
  ASSERT_TRUE(result.drift.has_value());
  EXPECT_DOUBLE_EQ(result.drift->pair_measured, 1.5);
  EXPECT_DOUBLE_EQ(result.drift->pair_predicted, 2.0);
  EXPECT_DOUBLE_EQ(result.drift->pair_predicted_gap, 3.0);
  EXPECT_DOUBLE_EQ(result.drift->owner_measured, 4.0);
  EXPECT_DOUBLE_EQ(result.drift->owner_predicted, 5.0);
  EXPECT_DOUBLE_EQ(result.drift->age_mean, 0.5);
  EXPECT_EQ(result.drift->blocks_refreshed, 12u);
}

TEST(GroupSumsStore, AveragesNoiseOverRanks) {
  estimate::NoiseEstimate other = kSomeNoise;
  other.gradient_mean_square = -0.5;
  other.loss_variance = 6.0;
  RunResult result;
  sum_of(GroupSums::of({{}, kSomeNoise, {}}), GroupSums::of({{}, other, {}}))
      .store(2, false, result);
  ASSERT_TRUE(result.noise.has_value());
  EXPECT_DOUBLE_EQ(result.noise->gradient_mean_square, 0.25);
  EXPECT_DOUBLE_EQ(result.noise->dispersion, 2.0);
  EXPECT_DOUBLE_EQ(result.noise->quantisation_variance, 3.0);
  EXPECT_DOUBLE_EQ(result.noise->loss_variance, 5.0);
  EXPECT_DOUBLE_EQ(result.noise->gradient_error, 0.5);
}

TEST(GroupSumsStore, RankWithoutNoiseIsNotAMeasurementOfZero) {
  RunResult result;
  sum_of(GroupSums::of({{}, kSomeNoise, some_drift()}), GroupSums::of({{}, {}, some_drift()}))
      .store(2, true, result);
  ASSERT_TRUE(result.noise.has_value());
  EXPECT_DOUBLE_EQ(result.noise->loss_variance, 4.0);
  EXPECT_DOUBLE_EQ(result.drift->pair_measured, 1.0);
}

TEST(GroupSumsStore, AgeSharesAddUpToOne) {
  RunResult result;
  sum_of(GroupSums::of({{}, {}, some_drift()}), GroupSums::of({{}, {}, some_drift()}))
      .store(2, true, result);
  EXPECT_DOUBLE_EQ(result.drift->age_shares[0], 0.80);
  EXPECT_DOUBLE_EQ(result.drift->age_shares[1], 0.15);
  EXPECT_DOUBLE_EQ(result.drift->age_shares[2], 0.05);
  EXPECT_EQ(result.drift->age_shares[3], 0.0);
}

TEST(GroupSumsStore, AgesBeyondTheLastBinFallIntoIt) {
  DriftReport drift = some_drift();
  drift.age_histogram.assign(40, 1);
  RunResult result;
  GroupSums::of({{}, {}, drift}).store(1, true, result);
  EXPECT_DOUBLE_EQ(result.drift->age_shares[kAgeBins - 1],
                   static_cast<double>(40 - (kAgeBins - 1)) / 40);
}

TEST(GroupSumsStore, OneRankWithoutPeersLostNothing) {
  RunResult result;
  GroupSums::of({{}, {}, DriftReport{}}).store(1, true, result);
  EXPECT_EQ(result.loss_observed, 0.0);
  EXPECT_EQ(result.drift->age_shares[0], 0.0);
}

}  // namespace
}  // namespace leeway::tools::train
