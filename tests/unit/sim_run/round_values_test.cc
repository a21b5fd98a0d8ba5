#include "run/round_values.h"

#include <gtest/gtest.h>

#include <array>

namespace leeway::sim {
namespace {

TEST(RoundValues, TheReferenceIsTheMeanPerUnitOfWork) {
  RoundValues values;
  values.add_contribution(std::array{1.0f, 2.0f}, 1);
  values.add_contribution(std::array{2.0f, 7.0f}, 0.5);
  values.close();
  EXPECT_DOUBLE_EQ(values.reference()[0], 2.0);
  EXPECT_DOUBLE_EQ(values.reference()[1], 6.0);
}

TEST(RoundValues, TheErrorIsAMeanOverElementsAndRanks) {
  RoundValues values;
  values.add_contribution(std::array{1.0f, 3.0f}, 1);
  values.add_result(0, 0, std::array{1.0f, 3.0f});  // exact
  values.add_result(1, 0, std::array{1.0f, 5.0f});  // one element off by 2
  values.add_result(2, 0, std::array{1.0f, 5.0f});
  values.close();
  EXPECT_DOUBLE_EQ(values.error().mean_square, 2 * 4.0 / 6);
  EXPECT_DOUBLE_EQ(values.error().value_mean_square, 5.0);
}

TEST(RoundValues, APartIsComparedWithItsPartOfTheReference) {
  RoundValues values;
  values.add_contribution(std::array{1.0f, 2.0f, 3.0f, 4.0f}, 1);
  values.add_result(0, 2, std::array{3.0f, 6.0f});
  values.close();
  EXPECT_DOUBLE_EQ(values.error().mean_square, 2.0);
  int visits = 0;
  values.for_each_result([&](std::uint32_t rank, auto reference, auto result) {
    ++visits;
    EXPECT_EQ(rank, 0u);
    EXPECT_DOUBLE_EQ(reference[0], 3.0);
    EXPECT_FLOAT_EQ(result[1], 6.0f);
  });
  EXPECT_EQ(visits, 1);
}

TEST(RoundValues, EqualResultsAreVisitedOnceForEachRank) {
  RoundValues values;
  values.add_contribution(std::array{1.0f}, 1);
  for (std::uint32_t rank = 0; rank < 5; ++rank) values.add_result(rank, 0, std::array{2.0f});
  values.close();
  std::vector<std::uint32_t> ranks;
  values.for_each_result([&](std::uint32_t rank, auto, auto) { ranks.push_back(rank); });
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(RoundValues, WithoutAResultThereIsNoError) {
  RoundValues values;
  values.add_contribution(std::array{1.0f}, 1);
  values.close();
  EXPECT_LT(values.error().mean_square, 0);
}

}  // namespace
}  // namespace leeway::sim
