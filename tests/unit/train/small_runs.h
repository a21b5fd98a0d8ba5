// Whole training runs with small models and real collectives inside this process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "train/model.h"
#include "train/trainer.h"

namespace leeway::tools::train {

inline constexpr int kRanks = 2;

inline std::string sentence_text(const std::string& sentence) {
  std::string text;
  while (text.size() < 20'000) text += sentence;
  return text;
}

inline Arguments small_job() {
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

inline Settings understood(const Arguments& arguments) {
  const auto settings = understand(arguments, Options{});
  EXPECT_TRUE(settings.ok()) << settings.status().c_str();
  return *settings;
}

// Runs each rank on a thread of its own, with what `job(rank)` gives it.
struct Job {
  Settings settings;
  Corpus corpus;
  std::uint64_t seed = 1;
};
inline std::vector<Result<RunResult>> train_together(const Options& options,
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

inline std::vector<Result<RunResult>> train_together(const Arguments& arguments) {
  const Settings settings = understood(arguments);
  const auto corpus = Corpus::from_text("sentence", sentence_text("the cat sat on the mat. "));
  EXPECT_TRUE(corpus.ok());
  return train_together(communicator_options(settings, 1), [&](int) {
    return Job{settings, *corpus, 1};
  });
}

// A trained model predicts a periodic text almost perfectly. An untrained model's perplexity is the
// number of its 12 characters.
inline constexpr double kLearntPerplexity = 1.5;

}  // namespace leeway::tools::train
