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
