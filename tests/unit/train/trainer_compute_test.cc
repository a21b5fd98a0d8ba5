// Tests whole runs whose ranks compute in micro-batches, straggle and drop work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "small_runs.h"

namespace leeway::tools::train {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kWholeRun = 60 * 2 * kRanks;  // micro-batches of one window

// Delays are 3 ms and more and the threshold is 4 ms, so most second micro-batches are dropped.
Arguments dropping_job() {
  Arguments arguments = small_job();
  arguments.compute.micro_batches = 2;
  arguments.compute.straggler = "lognormal:3:0.5";
  arguments.compute.threshold = "0.004";
  return arguments;
}

TEST(Train, MicroBatchesAddUpToTheBatch) {
  Arguments arguments = small_job();
  // In so few steps, different windows would show, but rounding errors do not.
  arguments.steps = 8;
  const auto whole = train_together(arguments);
  arguments.compute.micro_batches = 2;
  const auto pieces = train_together(arguments);
  ASSERT_TRUE(whole[0].ok() && pieces[0].ok()) << pieces[0].status().c_str();
  EXPECT_NEAR(pieces[0]->perplexity, whole[0]->perplexity, 1e-3 * whole[0]->perplexity);
  EXPECT_EQ(pieces[0]->compute.samples, whole[0]->compute.samples);
  EXPECT_EQ(pieces[0]->compute.completed, 8u * 2 * kRanks);
  EXPECT_EQ(pieces[0]->compute.drop_rate(), 0.0);
  EXPECT_FALSE(pieces[0]->compute.threshold_ms.has_value());
}

TEST(Train, DelaysCostTimeAndNothingElse) {
  Arguments arguments = small_job();
  arguments.steps = 8;
  arguments.compute.micro_batches = 2;
  const auto even = train_together(arguments);
  arguments.compute.straggler = "constant:15";
  const auto delayed = train_together(arguments);
  ASSERT_TRUE(even[0].ok() && delayed[0].ok()) << delayed[0].status().c_str();
  EXPECT_GE(delayed[0]->step_ms_p50, 30.0);
  EXPECT_EQ(delayed[0]->perplexity, even[0]->perplexity);
}

TEST(Train, ExtraStepsMakeUpForDroppedSamples) {
  for (const char* compensation : {"extra_steps", "requeue"}) {
    SCOPED_TRACE(compensation);
    Arguments arguments = dropping_job();
    arguments.compute.compensation = compensation;
    const auto results = train_together(arguments);
    for (const auto& result : results) {
      ASSERT_TRUE(result.ok()) << result.status().c_str();
      EXPECT_LT(result->perplexity, kLearntPerplexity);
      const ComputeSummary& compute = result->compute;
      EXPECT_GT(compute.drop_rate(), 0.1);
      EXPECT_GT(compute.steps, 60u);
      EXPECT_EQ(compute.planned, compute.steps * 2 * kRanks);
      // Counts are up to 44 steps old, out of some 90, when the run's end is predicted.
      EXPECT_GE(compute.completed, kWholeRun);
      EXPECT_LE(compute.completed, kWholeRun * 5 / 4);
      EXPECT_EQ(compute.completed, results[0]->compute.completed);
      EXPECT_EQ(compute.threshold_ms, 4.0);
      EXPECT_GT(compute.exchanges, 0u);
    }
  }
}

TEST(Train, WithoutCompensationDroppedSamplesAreMissing) {
  Arguments arguments = dropping_job();
  arguments.compute.compensation = "none";
  const auto results = train_together(arguments);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_EQ(result->compute.steps, 60u);
    EXPECT_LT(result->compute.completed, kWholeRun);
  }
}

TEST(Train, RanksThatDropUnequallyStayEqualInDdpModeUnderLoss) {
  Arguments arguments = dropping_job();
  arguments.mode = "ddp";
  arguments.loss = 0.1;
  arguments.compute.straggler += ",slow:1:2";
  for (const auto& result : train_together(arguments)) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();  // unequal models would be an error
    EXPECT_LT(result->perplexity, kLearntPerplexity);
  }
}

TEST(Train, DividesByPlannedMicroBatchesIfToldTo) {
  Arguments arguments = dropping_job();
  arguments.compute.normalisation = "maximum";
  for (const auto& result : train_together(arguments)) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_LT(result->perplexity, kLearntPerplexity);
  }
}

TEST(Train, AThresholdBelowAnyMicroBatchStillTrainsAndSaysSo) {
  Arguments arguments = dropping_job();
  arguments.steps = 20;
  arguments.compute.threshold = "0.0001";
  for (const auto& result : train_together(arguments)) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_NEAR(result->compute.drop_rate(), 0.5, 0.15);
    EXPECT_THAT(result->compute.warning, HasSubstr("threshold"));
    EXPECT_GT(result->compute.threshold_clamps, 0u);
  }
}

TEST(Train, RefusesRanksWithDifferentStragglers) {
  const auto corpus = Corpus::from_text("", sentence_text("same text. "));
  ASSERT_TRUE(corpus.ok());
  const Options options = communicator_options(understood(small_job()), 1);
  const auto results = train_together(options, [&](int rank) {
    Arguments arguments = dropping_job();
    if (rank == 1) arguments.compute.straggler = "constant:3";
    return Job{understood(arguments), *corpus, 1};
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kMismatch);
  }
}

}  // namespace
}  // namespace leeway::tools::train
