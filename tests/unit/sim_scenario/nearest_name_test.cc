#include "scenario/nearest_name.h"

#include <gtest/gtest.h>

namespace leeway::sim::scenario {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("rate", "rate"), 0);
  EXPECT_EQ(edit_distance("rat", "rate"), 1);
  EXPECT_EQ(edit_distance("rrate", "rate"), 1);
  EXPECT_EQ(edit_distance("rape", "rate"), 1);
  EXPECT_EQ(edit_distance("raet", "rate"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestName, IsTheCandidateAtTheLeastDistance) {
  EXPECT_EQ(nearest_name("lost", {"link", "loss", "list"}), "loss");
  EXPECT_EQ(nearest_name("dealy_ms", {"rate_mbps", "delay_ms"}), "delay_ms");
}

TEST(NearestName, IsEmptyWhereHalfOfTheNameIsWrong) {
  EXPECT_EQ(nearest_name("colour", {"rate_mbps", "loss"}), "");
  EXPECT_EQ(nearest_name("", {"a"}), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'a'), {std::string(999, 'a')}), "");
}

TEST(Suggestion, ListsTheValidNamesWhereNoneIsNear) {
  EXPECT_EQ(suggestion("colour", {"rate", "loss"}), "; valid are rate, loss");
  EXPECT_EQ(suggestion("los", {"rate", "loss"}), "; did you mean \"loss\"?");
  EXPECT_EQ(suggestion("los", {}), "; none are defined");
}

TEST(Suggestion, CutsLongLists) {
  const std::string text = suggestion("x", std::vector<std::string>(100, "candidate"));
  EXPECT_LT(text.size(), 180u);
  EXPECT_EQ(text.substr(text.size() - 5), ", ...");
}

}  // namespace
}  // namespace leeway::sim::scenario
