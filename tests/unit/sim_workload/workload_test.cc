#include "workload/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "scenario/parse.h"

namespace leeway::sim {
namespace {

scenario::Scenario scenario_of(const std::string& text) {
  auto parsed = scenario::parse_text(text, "a.txtpb");
  EXPECT_TRUE(parsed.ok()) << parsed.status().text();
  return parsed.ok() ? *parsed : scenario::Scenario();
}
std::unique_ptr<Workload> workload_of(const std::string& text, std::uint64_t seed = 1) {
  auto made = make_workload(scenario_of(text), seed);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return std::move(*made);
}
std::vector<float> gradient_of(Workload& workload, std::uint32_t rank) {
  std::vector<float> out(workload.elements());
  workload.gradient(rank, 0, out);
  return out;
}

TEST(MakeWorkload, IsSyntheticUnlessTold) {
  const auto workload = workload_of("operation { bytes: 4000 }");
  EXPECT_EQ(workload->elements(), 1000u);
  EXPECT_TRUE(workload->parameters(0).empty());
  double sum = 0;
  for (const float g : gradient_of(*workload, 3)) sum += g;
  EXPECT_NEAR(sum / 1000, 1, 4 / std::sqrt(1000.0));
}

TEST(MakeWorkload, TakesTheScenariosOptions) {
  const auto synthetic = workload_of(
      "operation { bytes: 40 } workload { synthetic { mean: 7 deviation: 0 rank_deviation: 0 } }");
  EXPECT_EQ(gradient_of(*synthetic, 0), std::vector<float>(10, 7));

  const auto quadratic = workload_of(
      "operation { bytes: 8 }"
      "workload { quadratic { condition: 4 noise: 0 center_deviation: 0 learning_rate: 2 } }");
  ASSERT_EQ(quadratic->parameters(1).size(), 2u);
  EXPECT_EQ(gradient_of(*quadratic, 0), gradient_of(*quadratic, 3));  // the same centre
  quadratic->update(1, 0, 0, std::vector<float>{1, 2}, quadratic->parameters(1));
  EXPECT_EQ(quadratic->parameters(1)[1], -4);
}

TEST(MakeWorkload, LogisticHasItsOwnSize) {
  const auto logistic = workload_of(
      "operation { bytes: 8 }"
      "workload { logistic { features: 5 samples_per_rank: 100 learning_rate: 2 } }");
  EXPECT_EQ(logistic->elements(), 6u);
  logistic->update(1, 0, 0, std::vector<float>(6, 1), logistic->parameters(1));
  EXPECT_EQ(logistic->parameters(1)[5], -2);
}

std::vector<float> sum_of(Workload& workload, std::uint32_t round, MicroBatches micro_batches) {
  std::vector<float> out(workload.elements());
  workload.gradient_sum(0, round, micro_batches, out);
  return out;
}

TEST(GradientSum, OfAllMicroBatchesIsTheGradientTimesTheirNumber) {
  for (const char* kind : {"synthetic", "quadratic", "logistic"}) {
    const auto workload =
        workload_of(std::string("operation { bytes: 400 } workload { ") + kind + " {} }");
    const auto gradient = gradient_of(*workload, 0);
    const auto sum = sum_of(*workload, 0, {12, 12});
    for (std::size_t j = 0; j < sum.size(); ++j) {
      EXPECT_NEAR(sum[j], 12 * gradient[j], 1e-5 * (1 + std::abs(sum[j]))) << kind;
    }
    EXPECT_EQ(sum_of(*workload, 0, {1, 1}), gradient) << kind;
  }
}

// Noise of micro-batches is independent, so a sum of fewer of them has relatively more noise.
TEST(GradientSum, OfSomeMicroBatchesHasTheNoiseOfAsMany) {
  for (const char* kind : {"synthetic { mean: 0 deviation: 0.5 }",
                           "quadratic { condition: 1 center_deviation: 0 noise: 0.5 }"}) {
    const auto workload =
        workload_of(std::string("operation { bytes: 160000 } workload { ") + kind + " }");
    const auto first = sum_of(*workload, 0, {4, 16});
    const auto second = sum_of(*workload, 1, {4, 16});  // another draw around the same mean
    double square = 0;
    for (std::size_t j = 0; j < first.size(); ++j) square += std::pow(first[j] - second[j], 2);
    const auto count = static_cast<double>(first.size());
    EXPECT_NEAR(square / count / 2, 0.25 * 16 * 4, 16 * 4 * std::sqrt(2 / count)) << kind;
  }
}

TEST(GradientSum, OfNothingIsZero) {
  const auto workload = workload_of("operation { bytes: 400 } workload { logistic {} }");
  for (const float value : sum_of(*workload, 0, {0, 12})) EXPECT_EQ(value, 0);
}

TEST(MakeWorkload, SeedsDiffer) {
  const std::string text = "operation { bytes: 40 } workload { quadratic { noise: 0 } }";
  EXPECT_EQ(gradient_of(*workload_of(text, 5), 0), gradient_of(*workload_of(text, 5), 0));
  EXPECT_NE(gradient_of(*workload_of(text, 5), 0), gradient_of(*workload_of(text, 6), 0));
}

TEST(MakeWorkload, LeavesGptToTheCommand) {
  const auto made = make_workload(scenario_of("workload { gpt {} }"), 1);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kUnsupported);
}

TEST(MakeWorkload, RefusesMoreParametersThanFitInMemory) {
  const auto made = make_workload(
      scenario_of("ranks: 1000 operation { bytes: 1000000000 } workload { quadratic {} }"), 1);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(make_workload(scenario_of("ranks: 1000 workload { logistic { features: 100000"
                                      " samples_per_rank: 100000 } }"),
                          1)
                .status()
                .code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::sim
