// Whole runs over communicators inside this process: small models, real collectives.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "train/model.h"

namespace leeway::tools::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRanks = 2;

std::string sentence_text(const std::string& sentence) {
  std::string text;
  while (text.size() < 20'000) text += sentence;
  return text;
}

Arguments small_job() {
  Arguments arguments;
  arguments.steps = 60;
  arguments.batch = 2;
  arguments.context = 16;
  arguments.layers = 1;
  arguments.width = 32;
  arguments.learning_rate = 1e-2;
  arguments.loss = 0.0;
  arguments.age_max = 4;
  return arguments;
}

Settings understood(const Arguments& arguments) {
  const auto settings = understand(arguments, Options{});
  EXPECT_TRUE(settings.ok()) << settings.status().c_str();
  return *settings;
}

// Each rank on a thread of its own; `job(rank)` says what it trains.
struct Job {
  Settings settings;
  Corpus corpus;
  std::uint64_t seed = 1;
};
std::vector<Result<RunResult>> train_together(const Options& options,
                                              const std::function<Job(int)>& job) {
  use_one_compute_thread();
  auto communicators = Communicator::create_inproc(kRanks, options);
  EXPECT_TRUE(communicators.ok()) << communicators.status().c_str();
  std::vector<Result<RunResult>> results(
      kRanks, Result<RunResult>(Status::error(StatusCode::kInternal, "did not run")));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const Job mine = job(rank);
      Progress silent(nullptr, "", false);
      Communicator& communicator = *(*communicators)[static_cast<std::size_t>(rank)];
      results[static_cast<std::size_t>(rank)] =
          train(communicator, mine.corpus, mine.settings, mine.seed, silent);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<Result<RunResult>> train_together(const Arguments& arguments) {
  const Settings settings = understood(arguments);
  const auto corpus = Corpus::from_text("sentence", sentence_text("the cat sat on the mat. "));
  EXPECT_TRUE(corpus.ok());
  return train_together(communicator_options(settings, 1), [&](int) {
    return Job{settings, *corpus, 1};
  });
}

// A periodic text can be foretold almost surely once learnt; untrained, it is as surprising as its
// 12 characters.
constexpr double kLearntPerplexity = 1.5;

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
    EXPECT_EQ(result->noise.value_or(aggregate::NoiseEstimate{}).variance(), 0.0);
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
    // Some 2,000 packets: a standard error of 0.9 %; 5 of them.
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

// Nearest rounding to 4 bits loses what is small in its block, step after step; its memory does
// not.
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
