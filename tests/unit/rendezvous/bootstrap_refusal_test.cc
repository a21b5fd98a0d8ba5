// Ranks that do not come to the rendezvous, or do not fit: everyone is told, at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/meeting.h"
#include "unit/rendezvous/loopback_ranks.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(JoinGroup, ListsTheRanksThatNeverCameToEveryone) {
  const std::uint16_t port = free_port();
  LocalConfiguration root = configuration(0, 7, port);
  root.join_timeout = 200ms;
  Joining first = join(1, 7, port);
  Joining third = join(3, 7, port);
  const auto group = join_group(root);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group), HasSubstr("4 of 7 ranks never came to the rendezvous at " +
                                     rendezvous_at(port) + ": missing ranks 2, 4-6"));
  EXPECT_EQ(text(first.get()), text(group));
  EXPECT_EQ(text(third.get()), text(group));
}

TEST(JoinGroup, EndsForEveryoneWithTheLeastPatientRankAndTellsItWhoIsMissing) {
  const std::uint16_t port = free_port();
  LocalConfiguration impatient = configuration(1, 3, port);
  impatient.join_timeout = 1600ms;
  const Stopwatch watch;
  Joining first = join(impatient);
  const auto group = join_group(configuration(0, 3, port));
  EXPECT_LT(watch.elapsed(), 10s);
  EXPECT_THAT(text(group), HasSubstr("missing rank 2"));
  EXPECT_EQ(text(first.get()), text(group));
}

// A group of three in which rank 1 is at fault. Returns rank 0's text, having checked that all
// three failed with it.
std::string text_of_common_failure(std::uint16_t port, Joining faulty) {
  const Stopwatch watch;
  Joining bystander = join(2, 3, port);
  RendezvousLimits patient = short_limits();
  patient.linger = 10s;  // ends early, once everyone has been told
  Joining root = join(configuration(0, 3, port), patient);
  const auto group = root.get();
  EXPECT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(text(bystander.get()), text(group));
  EXPECT_EQ(text(faulty.get()), text(group));
  EXPECT_LT(watch.elapsed(), 5s) << "the others must not wait for a time-out";
  return text(group);
}

TEST(JoinGroup, NamesBothSidesOfAWorldSizeDisagreement) {
  const std::uint16_t port = free_port();
  EXPECT_THAT(text_of_common_failure(port, join(1, 8, port)),
              AllOf(HasSubstr("rank 1"), HasSubstr("expects 8 ranks, rank 0 expects 3")));
}

// Ranks of another name are another group, which may meet at the same time. So time must pass.
TEST(JoinGroup, NamesBothCommunicatorNamesWhenTimeIsUp) {
  const std::uint16_t port = free_port();
  LocalConfiguration root = configuration(0, 2, port);
  LocalConfiguration other = configuration(1, 2, port);
  other.name = "validation";
  root.join_timeout = 1200ms;
  other.join_timeout = 800ms;
  Joining zero = join(root);
  const auto group = join(other).get();
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group), AllOf(HasSubstr("rank 1"), HasSubstr("\"validation\""),
                                 HasSubstr("\"world\""), HasSubstr("names must be equal")));
  EXPECT_THAT(text(zero.get()), AllOf(HasSubstr("missing rank 1"), HasSubstr("\"world\"")));
}

TEST(JoinGroup, NamesBothWindows) {
  const std::uint16_t port = free_port();
  LocalConfiguration other = configuration(1, 3, port);
  other.window_bytes = 77'777;
  EXPECT_THAT(text_of_common_failure(port, join(other)),
              AllOf(HasSubstr("rank 1 has a window of 77777 bytes"), HasSubstr("rank 0 of 0")));
}

TEST(JoinGroup, NamesBothNumbersOfLanes) {
  const std::uint16_t port = free_port();
  LocalConfiguration other = configuration(1, 3, port);
  other.lanes = 4;
  EXPECT_THAT(text_of_common_failure(port, join(other)),
              HasSubstr("rank 1 has LEEWAY_LANES=4, rank 0 1"));
}

TEST(JoinGroup, NamesAMixOfAddressFamilies) {
  const std::uint16_t port = free_port();
  LocalConfiguration other = configuration(1, 3, port);
  other.data_address.assign(16, std::byte{0xFD});
  EXPECT_THAT(
      text_of_common_failure(port, join(other)),
      AllOf(HasSubstr("rank 1 has data address fdfd:fdfd"), HasSubstr("rank 0 has 127.0.0.1")));
}

TEST(JoinGroup, NamesBothProcessesThatClaimOneRank) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 3, port);
  Joining one = join(1, 3, port);
  Joining two = join(1, 3, port);
  const std::string reason = text(root.get());
  const std::string place = this_place();
  EXPECT_THAT(reason, HasSubstr("two processes claim rank 1: the one at " + place +
                                " and the one at " + place));
  EXPECT_EQ(text(one.get()), reason);
  EXPECT_EQ(text(two.get()), reason);
}

TEST(JoinGroup, TellsTheReasonToRanksThatComeAfterIt) {
  const std::uint16_t port = free_port();
  RendezvousLimits patient;
  patient.linger = 10s;
  Joining root = join(configuration(0, 3, port), patient);
  LocalConfiguration other = configuration(1, 3, port);
  other.window_bytes = 4711;
  const auto faulty = join_group(other);
  const auto late = join_group(configuration(2, 3, port));
  EXPECT_THAT(text(late), HasSubstr("4711"));
  EXPECT_EQ(text(late), text(faulty));
  EXPECT_EQ(text(root.get()), text(faulty));
}

// As text_of_common_failure(), with a Hello that no rank of ours would put down.
std::string text_after_hello(const control::Hello& hello) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 3, port);
  Joining bystander = join(2, 3, port);
  const auto store = store_at(port);
  const MeetingKeys keys(configuration(1, 3, port));
  const auto invitation = parse_invitation(*store->get(keys.root(), 10s));
  EXPECT_TRUE(store->put(keys.hello(invitation->meeting(), 1), value_of(hello)).ok());
  const auto outcome = store->get(keys.outcome(invitation->meeting()), 10s);
  const auto answer = outcome.ok() ? parse_welcome(*outcome, 3) : std::nullopt;
  const auto group = root.get();
  EXPECT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(text(bystander.get()), text(group));
  EXPECT_EQ(answer ? answer->rejected().text() : "no answer", text(group));
  return text(group);
}

TEST(JoinGroup, NamesBothProtocolVersions) {
  control::Hello hello = valid_hello(1, 3);
  hello.set_protocol_version(wire::kVersion + 1u);
  hello.set_library_version("9.8.7");
  EXPECT_THAT(text_after_hello(hello),
              AllOf(HasSubstr("rank 1"),
                    HasSubstr("version " + std::to_string(wire::kVersion + 1u) + " (Leeway 9.8.7)"),
                    HasSubstr("rank 0 version " + std::to_string(unsigned{wire::kVersion}))));
}

TEST(JoinGroup, RejectsARankInAnothersPlace) {
  EXPECT_THAT(text_after_hello(valid_hello(2, 3)),
              HasSubstr("says it is rank 2 where rank 1 is awaited"));
  EXPECT_THAT(text_after_hello(valid_hello(0xFFFFFFFF, 3)),
              HasSubstr("says it is rank 4294967295"));
}

TEST(JoinGroup, RejectsASecondRankZeroAndTheFirst) {
  const std::uint16_t port = free_port();
  Joining one = join(0, 3, port);
  Joining two = join(0, 3, port);
  const std::string place = this_place();
  for (Joining* rank : {&one, &two}) {
    const auto group = rank->get();
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(text(group), HasSubstr("two processes claim rank 0: the one at " + place));
  }
}

TEST(JoinGroup, RejectsAnImpossibleDatagramSize) {
  control::Hello hello = valid_hello(1, 3);
  hello.mutable_configuration()->set_datagram_bytes(100);
  EXPECT_THAT(text_after_hello(hello), HasSubstr("rank 1 offers datagrams of 100 bytes"));
}

TEST(JoinGroup, PrintsNoControlCharactersOfAPeer) {
  control::Hello hello = valid_hello(1, 3);
  hello.set_place("\x1b[31mred\n");
  hello.set_world_size(4);
  EXPECT_THAT(text_after_hello(hello), HasSubstr("rank 1 at ?[31mred? expects 4"));
}

}  // namespace
}  // namespace leeway::rendezvous
