// A call that cannot be right must fail on each rank with a text that names the reason. The next
// call must be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/near/ranks.h"

namespace leeway::near {
namespace {

using namespace std::chrono_literals;
using collective::OperationSpec;
using ::testing::HasSubstr;

constexpr std::size_t kSeveralChunks = 5000;

void expect_sums(Ranks& ranks, std::size_t elements = kSeveralChunks) {
  const auto n = static_cast<float>(ranks.size());
  ranks.each([&](Rank rank) {
    std::vector<float> values(elements, static_cast<float>(rank + 1));
    const auto outcome = ranks.run(rank, all_reduce_of(values));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.c_str();
    for (const float value : values) ASSERT_EQ(value, n * (n + 1) / 2);
  });
}

Status call(Ranks& ranks, Rank rank, std::size_t elements = kSeveralChunks) {
  std::vector<float> values(elements, 1.0f);
  return ranks.run(rank, all_reduce_of(values)).status;
}

// Writes the descriptor of a call that a rank has begun, as its Caller would. The rank's slots hold
// nothing useful.
void describe(Ranks& ranks, Rank rank, std::uint64_t number, std::size_t elements) {
  std::vector<float> values(elements);
  const Plan plan = plan_of(all_reduce_of(values), ranks.size(), 4096);
  Descriptor& own = ranks.line(rank).descriptors[number % 2];
  own.call = number;
  own.what = plan.what();
  own.count = plan.count;
  own.condition = static_cast<std::uint64_t>(Condition::ordinary);
  own.from = own.to = 0;
}

TEST(Failures, ALateRankFailsAtOnceAndLaterCallsAreRight) {
  Ranks ranks(3);
  expect_sums(ranks);
  std::thread others([&] {
    ranks.each({0, 1}, [&](Rank rank) {
      const Status status = call(ranks, rank);
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(status.c_str(), HasSubstr("all_reduce #1"));
    });
  });
  ranks.await(0, progress_of(2, 1));
  ranks.await(1, progress_of(2, 1));
  ranks.advance(61s);
  others.join();
  const Status late = call(ranks, 2);  // the clock stands still
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.c_str(), HasSubstr("rank 0 gave it up at its own deadline"));
  for (int i = 0; i < 5; ++i) expect_sums(ranks);
}

// A peer passes on the number of the rank whose deadline passed. The number may be anything, so a
// number that no rank has must not be named.
TEST(Failures, TheRankWhoseDeadlineItWasIsNamedAtSecondHand) {
  for (const Rank culprit : {Rank{2}, Rank{77}}) {
    Ranks ranks(3);
    ranks.line(1).why =
        Reason{static_cast<std::uint8_t>(StatusCode::kDeadlineExceeded), culprit}.word();
    ranks.line(1).gave_up = 1;
    const Status status = call(ranks, 0);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    const Rank named = culprit == 2 ? 2 : 1;
    EXPECT_THAT(status.c_str(),
                HasSubstr("rank " + std::to_string(named) + " gave it up at its own deadline"));
    EXPECT_EQ(Reason::of(ranks.line(0).why).rank, named);
  }
}

TEST(Failures, ARankThatCouldNotGoOnForAnotherIsNotSaidToBeGone) {
  Ranks ranks(3);
  ranks.line(1).why = Reason{static_cast<std::uint8_t>(StatusCode::kPeerLost), 2}.word();
  ranks.line(1).gave_up = 1;
  const Status status = call(ranks, 0);
  EXPECT_EQ(status.code(), StatusCode::kPeerLost);
  EXPECT_THAT(status.c_str(), HasSubstr("rank 1 gave it up because rank 2 is gone"));
}

TEST(Failures, ARankThatWasGivenUpHearsThatItIsMeant) {
  Ranks ranks(3);
  ranks.line(1).why = Reason{static_cast<std::uint8_t>(StatusCode::kPeerLost), 0}.word();
  ranks.line(1).gave_up = 1;
  const Status status = call(ranks, 0);
  EXPECT_EQ(status.code(), StatusCode::kPeerLost);
  EXPECT_THAT(status.c_str(), HasSubstr("rank 1 gave this rank up as dead"));
  EXPECT_THAT(status.c_str(), HasSubstr("was this process stopped?"));
}

// Only rank 1 finds out that rank 2 is dead, and must tell the others.
TEST(Failures, TheRankThatIsDeadIsNamedToOthers) {
  Ranks ranks(3);
  ranks.hear(Status::error(StatusCode::kPeerLost, "rank 1: rank 2 is dead"), 2);
  std::thread finder([&] { EXPECT_FALSE(call(ranks, 1).ok()); });
  while (ranks.line(1).gave_up.load() == 0) {
    ranks.advance(1ms);
    std::this_thread::yield();
  }
  finder.join();
  EXPECT_EQ(Reason::of(ranks.line(1).why).rank, 2);
}

TEST(Failures, ARankThatDoesNotGoOnIsNamed) {
  Ranks ranks(2);
  describe(ranks, 1, 1, kSeveralChunks);
  ranks.station(1).post(1, 1);
  Status status;
  std::thread other([&] { status = call(ranks, 0); });
  ranks.await(0, progress_of(1, 2));
  ranks.advance(61s);
  other.join();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.c_str(), HasSubstr("rank 1 does not go on"));
}

TEST(Failures, ARankThatGivesUpInTheMiddleEndsTheCallForAll) {
  Ranks ranks(3);
  describe(ranks, 2, 1, kSeveralChunks);
  ranks.station(2).post(1, 1);
  std::thread others([&] {
    ranks.each({0, 1}, [&](Rank rank) {
      const Status status = call(ranks, rank);
      EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.c_str();
    });
  });
  ranks.await(0, progress_of(1, 2));
  ranks.await(1, progress_of(1, 2));
  ranks.station(2).give_up(1, StatusCode::kInternal);
  others.join();
}

TEST(Failures, ARankThatLeavesEndsTheCallByName) {
  Ranks ranks(3);
  ranks.station(1).leave(Gone::left);
  const Status status = call(ranks, 0);
  EXPECT_EQ(status.code(), StatusCode::kPeerLost);
  EXPECT_THAT(status.c_str(), HasSubstr("rank 1 has left the communicator"));
}

TEST(Failures, ARankThatLeftAfterItsLastCallSpoilsNothing) {
  Ranks ranks(2);
  std::thread first([&] {
    EXPECT_TRUE(call(ranks, 1).ok());
    ranks.station(1).leave(Gone::left);
  });
  EXPECT_TRUE(call(ranks, 0).ok());
  first.join();
}

TEST(Failures, RanksThatDisagreeAllHearIt) {
  Ranks ranks(3);
  ranks.each([&](Rank rank) {
    const Status status = call(ranks, rank, rank == 1 ? 1001 : 1000);
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.c_str();
    EXPECT_THAT(status.c_str(), HasSubstr("ranks disagree"));
    EXPECT_THAT(status.c_str(), HasSubstr("float[1001] sum"));
    EXPECT_THAT(status.c_str(), HasSubstr("float[1000] sum"));
  });
  expect_sums(ranks);
}

TEST(Failures, ADisagreementIsHeardBeforeAllHaveCome) {
  Ranks ranks(3);
  ranks.each({0, 1}, [&](Rank rank) {
    EXPECT_EQ(call(ranks, rank, rank == 1 ? 1001 : 1000).code(), StatusCode::kMismatch);
  });
}

TEST(Failures, AbortEndsTheCallUnderWayAndThoseToCome) {
  Ranks ranks(2);
  Status status;
  std::thread calling([&] { status = call(ranks, 0); });
  ranks.await(0, progress_of(1, 1));
  ranks.station(0).abort("was aborted");
  calling.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(call(ranks, 0).code(), StatusCode::kCancelled);
  EXPECT_EQ(call(ranks, 1).code(), StatusCode::kPeerLost) << "the other hears of it";
}

// Peers may still be in the failed call and read this rank's slots.
TEST(Failures, SlotsOfAFailedCallStayUntilAllHaveLeftIt) {
  Ranks ranks(2);
  std::vector<float> first(1000, 5.0f);
  Status status;
  std::thread failing([&] { status = ranks.run(0, all_reduce_of(first)).status; });
  ranks.await(0, progress_of(1, 1));
  ranks.advance(61s);
  failing.join();
  ASSERT_FALSE(status.ok());
  const Arena arena = ranks.station(0).arena();
  const auto slot_says = [&] { return *reinterpret_cast<const float*>(arena.own_slot(0)); };
  for (int call_number = 2; call_number <= 5; ++call_number) {  // one call for each slot
    std::vector<float> next(1000, 9.0f);
    std::thread waiting([&] { status = ranks.run(0, all_reduce_of(next)).status; });
    while (ranks.line(0).begun.load() < static_cast<std::uint64_t>(call_number))
      std::this_thread::yield();
    EXPECT_EQ(slot_says(), 5.0f);
    ranks.advance(61s);
    waiting.join();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(slot_says(), 5.0f);
  }
  EXPECT_TRUE(call(ranks, 1, 1000).ok()) << "rank 0 gave all that the first call takes";
  for (int missed = 0; missed < 4; ++missed) EXPECT_FALSE(call(ranks, 1, 1000).ok());
  expect_sums(ranks, 1000);
}

TEST(Failures, ARefusedCallHasItsNumber) {
  Ranks ranks(2);
  ranks.each([&](Rank rank) {
    std::vector<float> values(10, 1.0f);
    if (rank == 0) {
      const auto refused =
          ranks.caller(0).refuse(all_reduce_of(values), ranks.next_number(0),
                                 Status::error(StatusCode::kPeerLost, "rank 0: rank 7 is dead"), 7);
      EXPECT_STREQ(refused.status.c_str(), "rank 0: rank 7 is dead (all_reduce #0)");
    } else {
      EXPECT_EQ(call(ranks, 1, 10).code(), StatusCode::kPeerLost);
    }
  });
  expect_sums(ranks);
}

// Rank 1 may write anything into its part. Rank 0's call must end, and must not write beside its
// output.
TEST(Failures, WhatAPeerScribblesIsContained) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Ranks ranks(2);
    Line& line = ranks.line(1);
    describe(ranks, 1, 1, kSeveralChunks);
    for (Descriptor& descriptor : line.descriptors) {
      for (Word* word : {&descriptor.condition, &descriptor.first, &descriptor.from,
                         &descriptor.from_at, &descriptor.to, &descriptor.to_at}) {
        if (random() % 2 == 0) *word = random() >> (random() % 64);
      }
      if (random() % 8 == 0) descriptor.what = random();
      if (random() % 8 == 0) descriptor.call = random() % 3;
    }
    for (Word& region : line.regions) region = random() % 4;
    if (random() % 16 == 0) line.elsewhere[1] = 1;
    line.freed = static_cast<std::uint32_t>(random());
    line.asleep = static_cast<std::uint32_t>(random());
    line.progress = round % 2 == 0 ? ~std::uint64_t{0} : progress_of(1, 1 + random() % 8);
    line.gave_up = random() % 2;
    line.gone = static_cast<std::uint32_t>(random() % 4);
    std::vector<float> values(kSeveralChunks + 2, 3.0f);
    std::vector<float> guarded(kSeveralChunks, 1.0f);
    OperationSpec spec = all_reduce_of(guarded);
    spec.output.data = values.data() + 1;
    std::thread clock([&] {
      ranks.await(0, progress_of(1, 1));
      ranks.advance(61s);
    });
    (void)ranks.run(0, spec);
    clock.join();
    EXPECT_EQ(values.front(), 3.0f);
    EXPECT_EQ(values.back(), 3.0f);
  }
}

}  // namespace
}  // namespace leeway::near
