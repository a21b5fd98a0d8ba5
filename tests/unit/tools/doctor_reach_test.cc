#include "doctor/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::tools::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Gathering::Reach whole(std::size_t size) {
  Gathering::Reach reach;
  for (std::size_t rank = 0; rank < size; ++rank)
    reach.addresses.push_back("192.0.2." + std::to_string(rank + 1) + ":29501");
  reach.passed.assign(size, std::vector<bool>(size, true));
  reach.told.assign(size, true);
  return reach;
}

TEST(DoctorReach, NothingIsSaidOfANetworkThatIsWhole) {
  EXPECT_EQ(broken_paths(whole(4)), "");
}

TEST(DoctorReach, APairIsNamedWithItsDirectionFamilyAndRelays) {
  Gathering::Reach reach = whole(4);
  reach.passed[2][1] = false;
  reach.passed[3][1] = false;
  const std::string text = broken_paths(reach);
  EXPECT_THAT(text, HasSubstr("rank 1  192.0.2.2:29501\n"));
  EXPECT_THAT(text, HasSubstr("UDP between rank 1 and rank 2: nothing passes from rank 2 to rank 1 "
                              "(IPv4); rank 0 reaches both"));
  EXPECT_THAT(text, Not(HasSubstr("between rank 0 and rank")));
  reach.passed[1][2] = false;
  EXPECT_THAT(broken_paths(reach),
              HasSubstr("UDP between rank 1 and rank 2: nothing passes, either way (IPv4)"));
}

TEST(DoctorReach, WhereNobodyReachesBothThatIsSaid) {
  Gathering::Reach reach = whole(3);
  for (const std::size_t other : {0, 2}) reach.passed[1][other] = reach.passed[other][1] = false;
  EXPECT_THAT(broken_paths(reach), HasSubstr("no rank reaches both"));
}

TEST(DoctorReach, FamiliesThatDifferAreNamedWithTheRemedy) {
  Gathering::Reach reach = whole(2);
  reach.addresses[1] = "[2001:db8::1]:29501";
  reach.passed[0][1] = reach.passed[1][0] = false;
  EXPECT_THAT(broken_paths(reach), HasSubstr("(rank 0 told IPv4, rank 1 IPv6: set LEEWAY_BIND)"));
}

TEST(DoctorReach, ARankThatSaidNothingIsNamed) {
  Gathering::Reach reach = whole(3);
  reach.told[2] = false;
  EXPECT_THAT(broken_paths(reach), HasSubstr("rank 2 did not say what it heard"));
}

}  // namespace
}  // namespace leeway::tools::doctor
