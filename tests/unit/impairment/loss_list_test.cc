#include "impairment/loss_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leeway::impairment {
namespace {

PacketAddress packet(Rank source, Rank destination, std::uint32_t round, std::uint8_t phase,
                     std::uint32_t index) {
  PacketAddress address;
  address.source = source;
  address.destination = destination;
  address.round = round;
  address.phase = phase;
  address.index = {index};
  return address;
}

TEST(LossListContains, MatchesEachFieldExactly) {
  const LossList list = LossList::parse("0>1/5/1/3").value();
  EXPECT_TRUE(list.contains(packet(0, 1, 5, 1, 3)));
  EXPECT_FALSE(list.contains(packet(2, 1, 5, 1, 3)));
  EXPECT_FALSE(list.contains(packet(0, 2, 5, 1, 3)));
  EXPECT_FALSE(list.contains(packet(0, 1, 6, 1, 3)));
  EXPECT_FALSE(list.contains(packet(0, 1, 5, 0, 3)));
  EXPECT_FALSE(list.contains(packet(0, 1, 5, 1, 4)));
}

TEST(LossListContains, AnyEntryMayMatch) {
  const LossList list = LossList::parse("0>1/5/1/3,2>0/6/0/4").value();
  EXPECT_TRUE(list.contains(packet(0, 1, 5, 1, 3)));
  EXPECT_TRUE(list.contains(packet(2, 0, 6, 0, 4)));
  EXPECT_FALSE(list.contains(packet(0, 1, 6, 0, 4)));
}

TEST(LossListContains, AStarMatchesAnythingInItsField) {
  const LossList list = LossList::parse("*>*/*/*/3").value();
  EXPECT_TRUE(list.contains(packet(9, 4, 77, 2, 3)));
  EXPECT_FALSE(list.contains(packet(9, 4, 77, 2, 2)));
}

TEST(LossListContains, RepairsAndControlDatagramsGetThrough) {
  const LossList list = LossList::parse("*>*/*/*/*").value();
  PacketAddress repair = packet(0, 1, 5, 1, 3);
  repair.attempt = 1;
  EXPECT_FALSE(list.contains(repair));
  PacketAddress control = packet(0, 1, 5, 1, 3);
  control.control = true;
  EXPECT_FALSE(list.contains(control));
}

TEST(LossListParse, AnEmptyTextIsAnEmptyList) {
  const LossList list = LossList::parse("").value();
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(list.contains(packet(0, 1, 0, 0, 0)));
}

TEST(LossListParse, AWrongEntryIsQuoted) {
  for (const char* wrong : {"0>1/2/1", "0>1/2/3/4", "a>1/0/0/0", "0-1/0/0/0", "0>1/0/0/0/0",
                            "0>1/0/0/", "1024>0/0/0/0", "0>1/0/0/4194304", "-1>0/0/0/0"}) {
    const auto result = LossList::parse(std::string("*>*/0/0/0,") + wrong);
    ASSERT_FALSE(result.ok()) << wrong;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().text()), testing::HasSubstr(wrong));
  }
}

TEST(LossListParse, TheNumberOfEntriesIsBounded) {
  std::string text = "*>*/0/0/0";
  for (int i = 1; i < 256; ++i) text += ",*>*/0/0/" + std::to_string(i);
  EXPECT_TRUE(LossList::parse(text).ok());
  EXPECT_FALSE(LossList::parse(text + ",*>*/0/0/256").ok());
}

}  // namespace
}  // namespace leeway::impairment
