#include "near/station.h"

#include <gtest/gtest.h>

#include "unit/near/ranks.h"

namespace leeway::near {
namespace {

using namespace std::chrono_literals;

Terms terms_of(Ranks& ranks, std::uint64_t call = 1) {
  return {.name = "call", .call = call, .deadline = ranks.now() + 1s, .length = 1s};
}

TEST(StationWait, EndsWhenAllHaveComeAndNotBefore) {
  Ranks ranks(3);
  std::atomic<int> through{0};
  std::thread waiting([&] {
    EXPECT_TRUE(ranks.station(0).await_all(terms_of(ranks), 1).ok());
    ++through;
  });
  ranks.station(1).post(1, 1);
  ranks.station(2).post(1, 0);
  EXPECT_EQ(through, 0);
  ranks.station(2).post(1, 1);
  waiting.join();
}

// In many rounds, a rare lost wake-up would show as a delay.
TEST(StationWait, SleepersAreWokenManyTimes) {
  constexpr std::uint64_t kRounds = 2'000;
  Ranks ranks(4);
  ranks.each([&](Rank rank) {
    for (std::uint64_t call = 1; call <= kRounds; ++call) {
      ranks.station(rank).post(call, 1);
      ASSERT_TRUE(ranks.station(rank).await_all(terms_of(ranks, call), 1).ok());
    }
  });
}

TEST(StationWait, ASleeperSaysOnWhomAndIsAwakeAfterwards) {
  Ranks ranks(2);
  std::thread waiting([&] { EXPECT_TRUE(ranks.station(0).await_all(terms_of(ranks), 1).ok()); });
  while (ranks.line(0).asleep != 2) std::this_thread::yield();
  ranks.station(1).post(1, 1);
  waiting.join();
  EXPECT_EQ(ranks.line(0).asleep, 0u);
}

Status waits_until(Ranks& ranks, const std::function<void()>& happens) {
  Status status;
  std::thread waiting([&] { status = ranks.station(0).await_all(terms_of(ranks), 1); });
  while (ranks.line(0).asleep == 0) std::this_thread::yield();
  happens();
  waiting.join();
  return status;
}

TEST(StationWait, FailsAtTheDeadlineNamingTheLast) {
  Ranks ranks(3);
  ranks.station(1).post(1, 0);
  const Status status = waits_until(ranks, [&] { ranks.advance(2s); });
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_STREQ(status.c_str(),
               "rank 0: call #0: Timed out (deadline 1000 ms): rank 2 has not begun it");
}

TEST(StationWait, FailsWithWhoGivesTheCallUp) {
  Ranks ranks(3);
  const Status status =
      waits_until(ranks, [&] { ranks.station(2).give_up(1, StatusCode::kInternal); });
  EXPECT_EQ(status.code(), StatusCode::kPeerLost);
  EXPECT_NE(status.text().find("rank 2 could not go on with it"), std::string::npos)
      << status.c_str();
}

TEST(StationWait, FailsWithWhoLeaves) {
  for (const Gone how : {Gone::left, Gone::aborted}) {
    Ranks ranks(3);
    const Status status = waits_until(ranks, [&] { ranks.station(1).leave(how); });
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_NE(status.text().find("rank 1"), std::string::npos) << status.c_str();
  }
}

TEST(StationWait, DoesNotMindWhoLeftAfterwards) {
  Ranks ranks(2);
  ranks.station(1).post(1, 1);
  ranks.station(1).give_up(2, StatusCode::kInternal);
  ranks.station(1).leave(Gone::left);
  EXPECT_TRUE(ranks.station(0).await_all(terms_of(ranks), 1).ok());
  EXPECT_FALSE(ranks.station(0).await_all(terms_of(ranks), 2).ok());
}

TEST(StationWait, HearsThatAPeerIsDead) {
  Ranks ranks(2);
  const Status status = waits_until(ranks, [&] {
    ranks.hear(Status::error(StatusCode::kPeerLost, "rank 0: rank 1 is dead"));
    ranks.advance(500ms);
  });
  EXPECT_EQ(status.code(), StatusCode::kPeerLost);
  EXPECT_STREQ(status.c_str(), "rank 0: rank 1 is dead (call #0)");
}

TEST(StationWait, IsEndedByAbort) {
  Ranks ranks(2);
  const Status status = waits_until(ranks, [&] { ranks.station(0).abort("was aborted"); });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(ranks.line(0).gone, static_cast<std::uint32_t>(Gone::aborted));
}

TEST(StationWait, InspectsThoseWhoHaveComeWhileOthersHaveNot) {
  Ranks ranks(3);
  ranks.station(2).post(1, 1);
  const auto inspect = [](Rank peer) {
    EXPECT_EQ(peer, 2);
    return Status::error(StatusCode::kMismatch, "not so");
  };
  const Status status = ranks.station(0).await_all(terms_of(ranks), 1, inspect);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
}

TEST(Station, KnowsWhoGaveACallUp) {
  Ranks ranks(2);
  ranks.station(1).give_up(3, StatusCode::kInternal);
  EXPECT_FALSE(ranks.station(0).check_none_gave_up(terms_of(ranks, 3)).ok());
  EXPECT_TRUE(ranks.station(0).check_none_gave_up(terms_of(ranks, 4)).ok());
}

}  // namespace
}  // namespace leeway::near
