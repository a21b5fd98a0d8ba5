#include "sim/gpt_workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "train/evaluation.h"

namespace leeway::tools::simulation {
namespace {

constexpr std::uint32_t kRanks = 3;

// Sentences whose words follow each other by a rule, so that a model can learn more than pairs of
// characters.
std::string text() {
  const std::vector<std::string> words{"alpha ", "bravo ", "charlie ", "delta ", "echo. "};
  std::string all;
  std::uint32_t state = 1;
  while (all.size() < 40'000) {
    state = state * 1664525 + 1013904223;
    all += words[state >> 24 & 3];
    all += words[4];
  }
  return all;
}

GptWorkload::Options options_of(const train::Corpus& corpus) {
  return {.ranks = kRanks,
          .rounds = 60,
          .shape = {.vocabulary = corpus.vocabulary(),
                    .context = 16,
                    .layers = 1,
                    .width = 16,
                    .heads = 2},
          .batch = 4,
          .learning_rate = 0.01};
}

class GptWorkloadTest : public testing::Test {
 protected:
  static train::Corpus corpus() { return *train::Corpus::from_text("test", text()); }
  static void SetUpTestSuite() { train::use_one_compute_thread(); }

  // Runs a round in which each rank steps with the exact average.
  void round(std::uint32_t number) {
    std::vector<float> mean(workload_.elements()), gradient(workload_.elements());
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      workload_.gradient(rank, number, gradient);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradient[i] / kRanks;
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      workload_.update(rank, number, 0, mean, workload_.parameters(rank));
    }
  }
  double value_of(const std::string& name) {
    for (const sim::Measure& measure : workload_.measures()) {
      if (measure.name == name) return measure.value;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  train::Corpus corpus_ = corpus();
  GptWorkload::Options options_ = options_of(corpus_);
  GptWorkload workload_{options_, corpus(), 7};
};

TEST_F(GptWorkloadTest, AllRanksStartAsTheModelOfLeewayTrain) {
  train::Gpt model(options_.shape, 7);
  ASSERT_EQ(workload_.elements(), model.parameters().size());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < workload_.elements(); ++i) {
      ASSERT_EQ(workload_.parameters(rank)[i], model.parameters()[i]);
    }
  }
}

TEST_F(GptWorkloadTest, GradientIsThatOfTheRanksBatchAtItsOwnParameters) {
  workload_.parameters(1)[5] += 0.25F;
  std::vector<float> of_0(workload_.elements()), of_1(workload_.elements());
  workload_.gradient(1, 4, of_1);
  workload_.gradient(0, 4, of_0);
  train::Gpt model(options_.shape, 7);
  train::BatchSampler first(corpus_.training(), 17, 4, 7, 0),
      second(corpus_.training(), 17, 4, 7, 1);
  model.compute_gradient(first.batch(4));
  for (std::size_t i = 0; i < of_0.size(); ++i) ASSERT_EQ(of_0[i], model.gradient()[i]) << i;
  model.parameters()[5] += 0.25F;
  model.compute_gradient(second.batch(4));
  for (std::size_t i = 0; i < of_1.size(); ++i) ASSERT_EQ(of_1[i], model.gradient()[i]) << i;
}

TEST_F(GptWorkloadTest, TrainingBeatsThePairsOfCharacters) {
  const double before = value_of("workload.perplexity");
  EXPECT_NEAR(before, corpus_.vocabulary(), 0.2 * corpus_.vocabulary());
  for (std::uint32_t number = 0; number < options_.rounds; ++number) round(number);
  EXPECT_LT(value_of("workload.perplexity"), 0.9 * value_of("workload.bigram_perplexity"));
  EXPECT_LT(value_of("workload.training_loss"), std::log(before));
}

TEST_F(GptWorkloadTest, LossIsKnownAfterTheLastRoundOnly) {
  round(0);
  EXPECT_TRUE(std::isnan(workload_.loss(0)));
  round(options_.rounds - 1);
  // All replicas are equal, so one replica must score all windows like all of them together.
  EXPECT_NEAR(workload_.loss(0), value_of("workload.perplexity"), 1e-6 * workload_.loss(0));
}

TEST_F(GptWorkloadTest, EveryRankScoresWithItsOwnReplica) {
  const double before = value_of("workload.perplexity");
  // Rank 2 now predicts all characters equally likely, so its perplexity is the vocabulary's size.
  for (float& x : workload_.parameters(2)) x = 0;
  const double vocabulary = corpus_.vocabulary();
  const auto count = [&](int rank) {
    return static_cast<double>(
        train::validation_starts(corpus_.validation().size(), 17, rank, kRanks).size());
  };
  const double windows = count(0) + count(1) + count(2);
  const double share = count(2) / windows;
  const double after = value_of("workload.perplexity");
  // The initial logits of the other ranks are near zero, too, so the ranks' parts differ little.
  EXPECT_NEAR(std::log(after), (1 - share) * std::log(before) + share * std::log(vocabulary), 0.02);
  EXPECT_NE(after, before);
}

TEST_F(GptWorkloadTest, OwnersStepTheirShardsAtTheSchedulesRate) {
  std::vector<float> gradient(10, 1);
  std::vector<float> parameters(10, 2);
  workload_.update(1, 0, 30, gradient, parameters);
  std::vector<float> expected(10, 2);
  train::ShardedAdam adam(10);
  adam.step(expected, gradient, train::learning_rate_at(0, options_.rounds, 0.01));
  EXPECT_EQ(parameters, expected);
}

sim::scenario::Scenario scenario_of(const std::string& text_path) {
  sim::scenario::Scenario scenario;
  scenario.set_ranks(2);
  auto& gpt = *scenario.mutable_workload()->mutable_gpt();
  gpt.set_text(text_path);
  gpt.set_width(16);
  gpt.set_layers(1);
  gpt.set_context(20);
  return scenario;
}

TEST(MakeWorkloadWithGpt, ReadsTheScenariosText) {
  const std::string path = testing::TempDir() + "gpt_workload_text.txt";
  std::ofstream(path) << text();
  const auto made = make_workload_with_gpt(scenario_of(path), 1);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ((*made)->elements(), (*made)->parameters(1).size());

  auto too_long = scenario_of(path);
  too_long.mutable_workload()->mutable_gpt()->set_context(60'000);
  EXPECT_EQ(make_workload_with_gpt(too_long, 1).status().code(), StatusCode::kInvalidArgument);
  std::remove(path.c_str());
}

TEST(MakeWorkloadWithGpt, LeavesTheOthersToTheSimulator) {
  sim::scenario::Scenario scenario;
  scenario.mutable_operation()->set_bytes(40);
  const auto made = make_workload_with_gpt(scenario, 1);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->elements(), 10u);
}

TEST(MakeWorkloadWithGpt, RefusesATextThatIsNotThere) {
  EXPECT_FALSE(make_workload_with_gpt(scenario_of("/nowhere/text"), 1).ok());
}

}  // namespace
}  // namespace leeway::tools::simulation
