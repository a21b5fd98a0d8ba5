#include "collective/size_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kNobodyIsGone = [](Rank) { return false; };

// The agreement as rank 1 of three sees it.
class SizeAgreementOfThree : public ::testing::Test {
 protected:
  std::vector<Rank> questions() {
    std::vector<Rank> asked;
    for (Rank to = agreement.next(number + 1); to != kNoRank; to = agreement.next(number + 1)) {
      ++number;
      asked.push_back(to);
    }
    return asked;
  }

  SizeAgreement agreement{1, 3};
  std::uint32_t number = 0;
};

TEST_F(SizeAgreementOfThree, IsTheLeastThatAnyHasTold) {
  EXPECT_EQ(agreement.agreed_bytes(), std::nullopt);
  agreement.on_told(0, 1400);
  agreement.ask(1472);
  EXPECT_THAT(agreement.untold(), ElementsAre(2));
  EXPECT_EQ(agreement.agreed_bytes(), std::nullopt);
  agreement.on_told(2, 10);
  EXPECT_THAT(agreement.untold(), ElementsAre(2)) << "no datagram is that short";
  agreement.on_told(2, 1300);
  EXPECT_EQ(agreement.agreed_bytes(), 1300u);
}

TEST_F(SizeAgreementOfThree, AsksThoseThatHaveNotToldUntilItHasNewsForAll) {
  EXPECT_THAT(questions(), ElementsAre(0, 2));
  agreement.on_told(0, 1400);
  agreement.ask(0);
  EXPECT_THAT(questions(), ElementsAre(2));
  agreement.ask(1472);
  EXPECT_THAT(questions(), ElementsAre(0, 2)) << "its size is known now";
  agreement.ask(1200);
  EXPECT_EQ(agreement.own(), 1472) << "what was told stays";
  EXPECT_THAT(questions(), ElementsAre(2));
}

TEST_F(SizeAgreementOfThree, TellsThoseAgainThatHaveNotAcknowledged) {
  EXPECT_TRUE(agreement.known_to_all(kNobodyIsGone)) << "ranks have not asked each other";
  agreement.ask(0);
  EXPECT_THAT(questions(), ElementsAre(0, 2));
  agreement.ask(1472);
  EXPECT_THAT(questions(), ElementsAre(0, 2));
  agreement.on_told(0, 1472);
  agreement.on_told(2, 1472);
  agreement.on_acknowledged(0, 1, number);
  EXPECT_FALSE(agreement.known_to_all([](Rank rank) { return rank == 2; }))
      << "question 1 told no size";
  agreement.on_acknowledged(0, 5, number);
  EXPECT_FALSE(agreement.known_to_all([](Rank rank) { return rank == 2; }))
      << "question 5 was never sent";
  agreement.on_acknowledged(0, 3, number);
  EXPECT_TRUE(agreement.known_to_all([](Rank rank) { return rank == 2; }));
  EXPECT_FALSE(agreement.known_to_all(kNobodyIsGone));
  EXPECT_THAT(questions(), IsEmpty());
  agreement.tell();
  EXPECT_THAT(questions(), ElementsAre(2));
  agreement.on_acknowledged(2, number, number);
  EXPECT_TRUE(agreement.known_to_all(kNobodyIsGone));
}

}  // namespace
}  // namespace leeway::collective
