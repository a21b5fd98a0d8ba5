#include "workload/logistic.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::sim {
namespace {

constexpr std::uint32_t kLogisticRanks = 4;
constexpr LogisticProblem::Options kSkewed{
    .ranks = kLogisticRanks, .features = 8, .samples_per_rank = 50, .label_skew = 1, .l2 = 0.1};

std::unique_ptr<Workload> workload_of(const LogisticProblem::Options& options) {
  auto made = LogisticWorkload::make(options, 1.0F, 1);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return std::move(*made);
}

// Runs rounds of SGD on all ranks. Rank 0 weighs `tilt` times as much as each other rank.
void train(Workload& workload, float tilt, std::uint32_t rounds) {
  std::vector<float> gradient(workload.elements());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<float> mean(workload.elements());
    for (std::uint32_t rank = 0; rank < kLogisticRanks; ++rank) {
      workload.gradient(rank, round, gradient);
      const float weight = (rank == 0 ? tilt : 1) / (kLogisticRanks - 1 + tilt);
      for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += weight * gradient[j];
    }
    for (std::uint32_t rank = 0; rank < kLogisticRanks; ++rank) {
      workload.update(rank, round, 0, mean, workload.parameters(rank));
    }
  }
}

double value_of(Workload& workload, const std::string& name) {
  for (const Measure& measure : workload.measures()) {
    if (measure.name == name) return measure.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Logistic, HasAWeightForEachFeatureAndABias) {
  const auto workload = workload_of(kSkewed);
  EXPECT_EQ(workload->elements(), 9u);
  EXPECT_EQ(workload->parameters(3).size(), 9u);
  for (const float w : workload->parameters(3)) EXPECT_EQ(w, 0);
}

TEST(Logistic, SgdWithoutLossFindsTheOptimum) {
  const auto workload = workload_of(kSkewed);
  EXPECT_GT(workload->loss(0), 0.1);
  train(*workload, 1, 500);
  EXPECT_LT(value_of(*workload, "workload.distance_to_optimum"), 1e-5);
  EXPECT_LT(value_of(*workload, "workload.objective_gap"), 1e-10);
  EXPECT_GT(value_of(*workload, "workload.objective_gap"), -1e-13);
}

TEST(Logistic, TiltedWeightsEndElsewhereOnSkewedData) {
  const auto workload = workload_of(kSkewed);
  train(*workload, 2, 500);
  EXPECT_GT(value_of(*workload, "workload.distance_to_optimum"), 0.1);
  EXPECT_GT(value_of(*workload, "workload.objective_gap"), 1e-3);
}

TEST(Logistic, GradientsOfRanksDifferAndRepeat) {
  const auto workload = workload_of(kSkewed);
  std::vector<float> first(9), second(9), again(9);
  workload->gradient(0, 0, first);
  workload->gradient(1, 0, second);
  workload->gradient(0, 7, again);  // uses all points: no round draws any
  EXPECT_NE(first, second);
  EXPECT_EQ(first, again);
}

TEST(Logistic, MeasuresAreMeansOverReplicasThatDrift) {
  const auto workload = workload_of(kSkewed);
  workload->parameters(2)[1] = 3;
  double sum = 0;
  for (std::uint32_t rank = 0; rank < kLogisticRanks; ++rank) sum += workload->loss(rank);
  EXPECT_DOUBLE_EQ(value_of(*workload, "workload.objective_gap"), sum / kLogisticRanks);
  EXPECT_GT(workload->loss(2), workload->loss(1));
}

}  // namespace
}  // namespace leeway::sim
