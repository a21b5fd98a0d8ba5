#include "train/accumulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "small_runs.h"

namespace leeway::tools::train {
namespace {

// A rank whose threshold, once in force, allows only one of its two micro-batches.
class DroppingRank {
 public:
  explicit DroppingRank(const std::string& normalisation)
      : communicators_(Communicator::create_inproc(1).value()),
        corpus_(*Corpus::from_text("", sentence_text("the cat sat on the mat. "))) {
    Arguments arguments = small_job();
    arguments.compute.micro_batches = 2;
    arguments.compute.straggler = "constant:2";
    arguments.compute.threshold = "0.001";
    arguments.compute.normalisation = normalisation;
    settings_ = understood(arguments);
    model_ = std::make_unique<Gpt>(
        GptShape{corpus_.vocabulary(), settings_.context, 1, settings_.width, settings_.heads}, 1);
    accumulation_ =
        Accumulation::create(*communicators_[0], *model_, corpus_.training(), settings_, 1).value();
  }

  ComputeBudget& budget() { return accumulation_->budget(); }
  // Returns the mean of the steps' losses.
  double compute_steps(std::uint64_t steps) {
    double loss = 0;
    for (std::uint64_t step = 0; step < steps; ++step)
      loss = accumulation_->compute(step).value_or(0.0);
    return loss;
  }

 private:
  std::vector<std::unique_ptr<Communicator>> communicators_;
  Corpus corpus_;
  Settings settings_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<Accumulation> accumulation_;
};

constexpr std::uint64_t kWarmUpSteps = 6;  // ComputeBudgetOptions

TEST(AccumulationCompute, WeighsByWhatWasCompleted) {
  DroppingRank rank("realised");
  rank.compute_steps(kWarmUpSteps);
  EXPECT_EQ(rank.budget().weight(), 2.0);
  rank.compute_steps(1);
  EXPECT_EQ(rank.budget().completed(), 1u);
  EXPECT_EQ(rank.budget().weight(), 1.0);
}

TEST(AccumulationCompute, WeighsByWhatWasPlannedIfToldTo) {
  DroppingRank rank("maximum");
  rank.compute_steps(kWarmUpSteps + 1);
  EXPECT_EQ(rank.budget().completed(), 1u);
  EXPECT_EQ(rank.budget().weight(), 2.0);
}

TEST(AccumulationCompute, ReturnsTheMeanLossOfWhatWasCompleted) {
  // An untrained model's loss is nearly the logarithm of its 11 characters, for any windows.
  DroppingRank rank("realised");
  EXPECT_NEAR(rank.compute_steps(1), std::log(11.0), 0.3);
  EXPECT_NEAR(rank.compute_steps(kWarmUpSteps), std::log(11.0), 0.3);
  EXPECT_EQ(rank.budget().completed(), 1u);
}

}  // namespace
}  // namespace leeway::tools::train
