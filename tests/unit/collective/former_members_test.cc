#include "collective/former_members.h"

#include <gtest/gtest.h>

#include <array>

namespace leeway::collective {
namespace {

TEST(FormerMembers, TheLatestAreRemembered) {
  FormerMembers members;
  constexpr auto kPlaces = static_cast<std::uint32_t>(FormerMembers::kPlaces);
  for (std::uint32_t epoch = 1; epoch <= kPlaces + 2; ++epoch)
    members.add({.epoch = epoch, .self = 0, .slots = {0, 1}, .size = 1200});
  EXPECT_EQ(members.find(2), nullptr);
  ASSERT_NE(members.find(3), nullptr);
  EXPECT_EQ(members.find(3)->epoch, 3u);
  EXPECT_NE(members.find(kPlaces + 2), nullptr);
  EXPECT_EQ(members.find(kPlaces + 3), nullptr);
}

// A former member (WIRE 6.8) that was rank 1 of three. Rank 2 is in slot 7.
class AnswerOfAFormerMember : public ::testing::Test {
 protected:
  std::optional<wire::PacketType> answer_to(wire::PacketType type, Rank slot, Rank source = 2) {
    std::array<std::byte, wire::kPrefixBytes> datagram{};
    wire::encode_bare({type, 5, source, 1, 30}, datagram);
    const auto answer = member.answer_to(slot, datagram);
    if (!answer) return {};
    EXPECT_EQ(answer->epoch, 5u);
    EXPECT_EQ(answer->source, 1);
    EXPECT_EQ(answer->destination, source);
    return answer->type;
  }
  std::optional<wire::Prefix> answer_to_report(bool heard_goodbye) {
    std::array<std::byte, 200> memory{};
    wire::Report report;
    report.heard_goodbye = heard_goodbye;
    const std::size_t bytes =
        wire::encode_report({wire::PacketType::report, 5, 2, 1, 31}, report, memory);
    return member.answer_to(7, ByteSpan(memory).first(bytes));
  }

  FormerMember member{.epoch = 5, .self = 1, .slots = {0, 1, 7}, .size = 0};
};

TEST_F(AnswerOfAFormerMember, IsAGoodbyeAndToAGoodbyeAReport) {
  EXPECT_EQ(answer_to(wire::PacketType::probe, 7), wire::PacketType::goodbye);
  EXPECT_EQ(answer_to(wire::PacketType::goodbye, 7), wire::PacketType::report);
}

TEST_F(AnswerOfAFormerMember, AnswersNoAnswer) {
  EXPECT_FALSE(answer_to(wire::PacketType::given_up, 7));
  EXPECT_FALSE(answer_to(wire::PacketType::alive, 7));
  EXPECT_TRUE(answer_to_report(/*heard_goodbye=*/false));
  EXPECT_FALSE(answer_to_report(/*heard_goodbye=*/true)) << "it has closed, too";
}

TEST_F(AnswerOfAFormerMember, OnlyPeersAreAnswered) {
  EXPECT_FALSE(answer_to(wire::PacketType::probe, 0)) << "another process as rank 2";
  EXPECT_FALSE(answer_to(wire::PacketType::probe, 7, 3)) << "no such rank";
}

}  // namespace
}  // namespace leeway::collective
