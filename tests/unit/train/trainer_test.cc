#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "small_runs.h"

namespace leeway::tools::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Train, LearnsInReplicaModeWithoutLoss) {
  const auto results = train_together(small_job());
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_LT(result->perplexity, kLearntPerplexity);
    EXPECT_EQ(result->loss_observed, 0.0);
    ASSERT_TRUE(result->drift.has_value());
    EXPECT_EQ(result->drift->age_max_seen, 0u);
    EXPECT_EQ(result->drift->pair_measured, 0.0);
    EXPECT_GT(result->bytes_sent, 0u);
    EXPECT_EQ(result->noise.value_or(estimate::NoiseEstimate{}).variance(), 0.0);
    EXPECT_GE(result->step_ms_p99, result->step_ms_p50);
  }
  EXPECT_EQ(results[0]->perplexity, results[1]->perplexity);
}

TEST(Train, LearnsInReplicaModeUnderLoss) {
  Arguments arguments = small_job();
  arguments.loss = 0.2;
  const auto results = train_together(arguments);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_LT(result->perplexity, kLearntPerplexity);
    // Some 2,000 packets give a standard error of 0.9 %. The tolerance is five of these.
    EXPECT_NEAR(result->loss_observed, 0.2, 0.045);
    ASSERT_TRUE(result->drift.has_value());
    EXPECT_GT(result->drift->owner_measured, 0.0);
    EXPECT_GT(result->drift->age_max_seen, 0u);
    EXPECT_LE(result->drift->age_max_seen, 4u);
  }
  EXPECT_EQ(results[0]->perplexity, results[1]->perplexity);
}

TEST(Train, KeepsModelsEqualInDdpModeUnderLoss) {
  Arguments arguments = small_job();
  arguments.mode = "ddp";
  arguments.loss = 0.2;
  const auto results = train_together(arguments);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();  // unequal models would be an error
    EXPECT_LT(result->perplexity, kLearntPerplexity);
    EXPECT_GT(result->loss_observed, 0.1);
    EXPECT_FALSE(result->drift.has_value());
  }
}

TEST(Train, LearnsFromFourBitGradientsUnderLoss) {
  Arguments arguments = small_job();
  arguments.loss = 0.1;
  arguments.codec = "nvfp4";
  arguments.parameter_codec = "bf16";
  const auto results = train_together(arguments);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_LT(result->perplexity, kLearntPerplexity);
    EXPECT_THAT(result->codecs, ElementsAre(CodecSteps{Codec::nvfp4, 60}));
    ASSERT_TRUE(result->noise.has_value());
    EXPECT_GT(result->noise->quantisation_variance, 0.0);
    EXPECT_EQ(result->noise->gradient_mean_square, results[0]->noise->gradient_mean_square);
  }
}

TEST(Train, LearnsInDdpModeWithACodecForEachHalf) {
  Arguments arguments = small_job();
  arguments.mode = "ddp";
  arguments.codec = "nvfp4";
  arguments.spread_codec = "bf16";
  for (const auto& result : train_together(arguments)) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();  // unequal models would be an error
    EXPECT_LT(result->perplexity, kLearntPerplexity);
  }
}

// Rounding to 4 bits loses a block's small elements in every step, unless a residual keeps them.
TEST(Train, ErrorFeedbackIsKeptOverSteps) {
  Arguments arguments = small_job();
  arguments.codec = "nvfp4:nearest";
  const auto without = train_together(arguments);
  arguments.error_feedback = true;
  const auto with = train_together(arguments);
  ASSERT_TRUE(without[0].ok() && with[0].ok()) << with[0].status().c_str();
  EXPECT_LT(with[0]->perplexity, kLearntPerplexity);
  EXPECT_NE(with[0]->perplexity, without[0]->perplexity);
}

TEST(Train, AutomaticCodecIsNamedStepByStep) {
  Arguments arguments = small_job();
  arguments.codec = "automatic";
  const auto results = train_together(arguments);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    EXPECT_EQ(result->codecs, results[0]->codecs);
    std::uint64_t steps = 0;
    for (const CodecSteps& used : result->codecs) {
      EXPECT_NE(used.codec, Codec::automatic);
      steps += used.steps;
    }
    EXPECT_EQ(steps, 60u);
  }
}

TEST(Train, EqualSeedsWithoutLossGiveEqualModels) {
  const auto one = train_together(small_job());
  const auto two = train_together(small_job());
  ASSERT_TRUE(one[0].ok() && two[0].ok());
  EXPECT_EQ(one[0]->perplexity, two[0]->perplexity);
}

TEST(Train, RefusesRanksThatHoldDifferentTexts) {
  const Settings settings = understood(small_job());
  const auto results = train_together(communicator_options(settings, 1), [&](int rank) {
    return Job{settings, *Corpus::from_text("", sentence_text(rank == 0 ? "one " : "two ")), 1};
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(std::string(result.status().text()), HasSubstr("rank 0 and rank 1"));
  }
}

TEST(Train, RefusesRanksWithDifferentSteps) {
  const auto corpus = Corpus::from_text("", sentence_text("same text. "));
  ASSERT_TRUE(corpus.ok());
  const Options options = communicator_options(understood(small_job()), 1);
  const auto results = train_together(options, [&](int rank) {
    Arguments arguments = small_job();
    arguments.steps += rank;
    return Job{understood(arguments), *corpus, 1};
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kMismatch);
  }
}

}  // namespace
}  // namespace leeway::tools::train
