// If ranks do not come to the rendezvous, or do not fit, every rank must be told at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/log.h"
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

LocalConfiguration with_secret(int rank, std::uint16_t port, std::string_view digits) {
  LocalConfiguration local = configuration(rank, 2, port);
  local.identity = identity_with(digits);
  local.join_timeout = 1500ms;
  return local;
}

TEST(JoinGroup, ARankWithAnotherSecretIsInTheErrorsOfBothSides) {
  const std::uint16_t port = free_port();
  LocalConfiguration late = with_secret(1, port, "2");
  late.join_timeout = 2500ms;  // rank 0 is gone before that
  Joining zero = join(with_secret(0, port, "1"));
  Joining one = join(late);
  EXPECT_THAT(text(zero.get()),
              AllOf(HasSubstr("missing rank 1; "), HasSubstr("connections were refused"),
                    HasSubstr("the last from 127.0.0.1:"), HasSubstr("LEEWAY_SECRET_FILE")));
  EXPECT_THAT(text(one.get()),
              AllOf(HasSubstr("did not prove this process's secret"),
                    HasSubstr("LEEWAY_SECRET_FILE"), HasSubstr("it has gone since")));
}

TEST(JoinGroup, ASecretThatRankZeroHasNotIsInTheErrorsOfBothSides) {
  const std::uint16_t port = free_port();
  LocalConfiguration without = configuration(0, 2, port);
  without.join_timeout = 1500ms;
  LocalConfiguration late = with_secret(1, port, "2");
  late.join_timeout = 2500ms;
  Joining zero = join(without);
  Joining one = join(late);
  EXPECT_THAT(text(zero.get()),
              AllOf(HasSubstr("missing rank 1; "), HasSubstr("connections were refused"),
                    HasSubstr("it has a secret (LEEWAY_SECRET_FILE) or certificates, and this "
                              "process has none")));
  EXPECT_THAT(text(one.get()), HasSubstr("has rank 0 the same one (LEEWAY_SECRET_FILE)?"));
}

TEST(JoinGroup, ARankWithAnotherSecretIsOneLineOfTheLog) {
  const std::uint16_t port = free_port();
  ::testing::internal::CaptureStderr();
  Joining one = join(with_secret(1, port, "2"));
  Log log(LogLevel::warn, 0);
  EXPECT_FALSE(join_group(with_secret(0, port, "1"), &log, short_limits()).ok());
  EXPECT_FALSE(one.get().ok());
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::size_t first = said.find("it does not know the secret of this job");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("it does not know", first + 1), std::string::npos) << said;
}

// Returns the log of a rank that waits longer than `first_word`.
std::string said_by(const LocalConfiguration& waiting) {
  RendezvousLimits limits = short_limits();
  limits.first_word = 600ms;
  ::testing::internal::CaptureStderr();
  Log log(LogLevel::warn, waiting.rank);
  EXPECT_FALSE(join_group(waiting, &log, limits).ok());
  return ::testing::internal::GetCapturedStderr();
}

TEST(JoinGroup, RanksThatWaitSayForWhom) {
  const std::uint16_t port = free_port();
  for (const int rank : {0, 1}) {
    LocalConfiguration waiting = configuration(rank, 5, port);
    LocalConfiguration other = configuration(1 - rank, 5, port);
    waiting.join_timeout = 1500ms;
    other.join_timeout = 3s;
    Joining there = join(other);
    Joining third = join(3, 5, port);
    EXPECT_THAT(said_by(waiting),
                AllOf(HasSubstr("rank " + std::to_string(rank) + " at " + rendezvous_at(port)),
                      HasSubstr("waits for ranks 2, 4; it gives up in ")));
    EXPECT_FALSE(there.get().ok());
    EXPECT_FALSE(third.get().ok());
  }
}

TEST(JoinGroup, ARankThatWaitsForRankZeroSaysSo) {
  LocalConfiguration alone = configuration(1, 3, free_port());
  alone.join_timeout = 800ms;
  EXPECT_THAT(said_by(alone), AllOf(HasSubstr("rank 1 at 127.0.0.1:"),
                                    HasSubstr("Connection refused; is rank 0 running")));
  // Here the store belongs to another process than rank 0's.
  LocalConfiguration root = configuration(0, 3, free_port());
  root.store = *TcpRendezvous::connect(root.rendezvous);
  root.join_timeout = 2s;
  EXPECT_THAT(said_by(root), AllOf(HasSubstr("rank 0 at the store at 127.0.0.1:"),
                                   HasSubstr("cannot invite: Connection refused")));
}

TEST(WaitReport, IsDueAfterTwiceTheTimeEachTime) {
  const MeetingClock::time_point begin{};
  WaitReport report(begin, 10s);
  EXPECT_FALSE(report.due(begin + 9s));
  EXPECT_EQ(report.left(begin + 9s), 1s);
  EXPECT_TRUE(report.due(begin + 10s));
  EXPECT_FALSE(report.due(begin + 19s));
  EXPECT_TRUE(report.due(begin + 20s));
  EXPECT_FALSE(report.due(begin + 39s));
  EXPECT_EQ(report.waited(begin + 39s), 39s);
}

// Makes a group of three in which rank 1 is at fault. Checks that all fail with the same text, and
// returns it.
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

// Ranks of another name may be another group that meets at the same time, so the error comes only
// when time is up.
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
  EXPECT_THAT(text(group),
              AllOf(HasSubstr("rank 1"), HasSubstr("\"validation\""), HasSubstr("\"world\""),
                    HasSubstr("if rank 0 means this one by it, names must be equal")));
  EXPECT_THAT(text(zero.get()), AllOf(HasSubstr("missing rank 1"), HasSubstr("\"world\"")));
}

// Rank 1 of an earlier start is still there. It must not join this start's rank 0, which must not
// take it for this start's rank 1.
TEST(JoinGroup, KeepsRanksOfAnotherStartOut) {
  const std::uint16_t port = free_port();
  const auto of_start = [port](int rank, std::uint64_t start) {
    LocalConfiguration local = configuration(rank, 2, port);
    local.restart_count = start;
    return local;
  };
  LocalConfiguration stale = of_start(1, 7);
  stale.join_timeout = 1500ms;
  Joining left_over = join(stale);
  const auto place = *TcpRendezvous::serve(rendezvous_at(port));
  Joining zero = join(of_start(0, 8));
  Joining one = join(of_start(1, 8));
  EXPECT_TRUE(zero.get().ok());
  EXPECT_TRUE(one.get().ok());
  EXPECT_FALSE(left_over.get().ok());
  EXPECT_THAT(text(join(stale).get()),
              AllOf(HasSubstr("rank 1 could not join"),
                    HasSubstr("; ranks of another start (LEEWAY_RUN_ID) met there: is this process "
                              "left from an earlier one?")));
}

// Starts by hand have no id, so a rank that an earlier start left can take a place in the group.
TEST(JoinGroup, TellsARankThatCameTooLateThatTheGroupHasBegun) {
  const std::uint16_t port = free_port();
  const auto place = *TcpRendezvous::serve(rendezvous_at(port));
  Joining left_over = join(1, 2, port);
  ASSERT_TRUE(join(0, 2, port).get().ok());
  ASSERT_TRUE(left_over.get().ok());
  LocalConfiguration late = configuration(1, 2, port);
  late.join_timeout = 1500ms;
  EXPECT_THAT(text(join(late).get()),
              AllOf(HasSubstr("; that group began without this process, perhaps with one that an "
                              "earlier start left"),
                    HasSubstr("start all ranks anew")));
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

// Does as text_of_common_failure(), with a Hello that none of this library's ranks would send.
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
