#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace leeway::tools::train {
namespace {

std::vector<std::size_t> starts_of_all(std::size_t tokens, std::size_t window, int ranks) {
  std::vector<std::size_t> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto starts = validation_starts(tokens, window, rank, ranks);
    all.insert(all.end(), starts.begin(), starts.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ValidationStarts, AreTheSameWindowsForAnyNumberOfRanks) {
  const auto reference = starts_of_all(425'984, 65, 1);
  EXPECT_EQ(reference.size(), kValidationWindowsMax);
  for (const int ranks : {2, 3, 4, 7})
    EXPECT_EQ(starts_of_all(425'984, 65, ranks), reference) << ranks << " ranks";
}

TEST(ValidationStarts, WindowsAreDisjointAndInsideTheText) {
  for (const std::size_t tokens : {65u, 66u, 1000u, 33'281u, 425'984u}) {
    const auto starts = starts_of_all(tokens, 65, 4);
    ASSERT_FALSE(starts.empty());
    EXPECT_LE(starts.back() + 65, tokens);
    for (std::size_t i = 1; i < starts.size(); ++i)
      EXPECT_GE(starts[i], starts[i - 1] + 65) << tokens << " tokens";
  }
}

TEST(ValidationStarts, ARankMayHaveNone) {
  EXPECT_TRUE(validation_starts(130, 65, 3, 4).empty());
}

TEST(Perplexity, IsTheExponentialOfTheMeanLoss) {
  EXPECT_DOUBLE_EQ(perplexity(0.0, 8.0), 1.0);
  EXPECT_NEAR(perplexity(3.0 * std::log(5.0), 3.0), 5.0, 1e-12);
}

TEST(ValidationPerplexity, OfAnUntrainedModelIsTheVocabularyOnEveryRank) {
  auto communicators = Communicator::create_inproc(1);
  ASSERT_TRUE(communicators.ok()) << communicators.status().c_str();
  Gpt model({.vocabulary = 11, .context = 16, .layers = 1, .width = 16, .heads = 1}, 1);
  std::vector<std::uint8_t> tokens(3000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint8_t>(i * i % 11);
  const auto score = validation_perplexity(*communicators->front(), model, tokens, 17);
  ASSERT_TRUE(score.ok()) << score.status().c_str();
  EXPECT_NEAR(*score, 11.0, 0.6);
}

}  // namespace
}  // namespace leeway::tools::train
