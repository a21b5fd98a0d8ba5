// Tests communicators that are made in the background: over UDP sockets of this process, and within
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/process_threads.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

using Clock = std::chrono::steady_clock;
using Group = std::vector<std::unique_ptr<Communicator>>;

// A step that waits in vain for another rank takes kJoinTimeout. Steps that must not wait have to
// end within kNobodyWaitedFor.
constexpr Duration kJoinTimeout = 60s;
constexpr Duration kNobodyWaitedFor = 10s;

class Pending : public ::testing::Test {
 protected:
  Options options(int rank, int size) {
    Options options;
    options.store = store_;
    options.transport = TransportKind::udp;
    options.bind_address = "127.0.0.1";
    options.rank = rank;
    options.world_size = size;
    options.join_timeout = kJoinTimeout;
    return options;
  }
  std::shared_ptr<Rendezvous> store_ = std::make_shared<InprocRendezvous>();
  const Clock::time_point start_ = Clock::now();
};

Group make_pending_group(int size, const Options& options = {}) {
  auto group = Communicator::create_inproc(size, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  return std::move(*group);
}

// Makes an all_reduce of all ranks from one thread.
void expect_works(Group& group) {
  std::vector<std::vector<float>> data(group.size(), std::vector<float>(1000, 1.0f));
  std::vector<Work> works;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    works.push_back(group[rank]->all_reduce_async(std::span(data[rank]), {.delivery = exact(10s)}));
  }
  const Status status = Work::wait_all(works);
  EXPECT_TRUE(status.ok()) << status.c_str();
  for (const auto& sums : data) EXPECT_THAT(sums, Each(static_cast<float>(group.size())));
}

Group all_of(std::vector<PendingCommunicator>& pending) {
  Group group;
  for (PendingCommunicator& one : pending) {
    auto made = one.wait();
    EXPECT_TRUE(made.ok()) << made.status().c_str();
    group.push_back(made.ok() ? std::move(*made) : nullptr);
  }
  return group;
}

TEST_F(Pending, OneThreadMakesAllRanks) {
  constexpr int kRanks = 3;
  std::latch told(kRanks);
  std::vector<PendingCommunicator> pending;
  for (int rank = 0; rank < kRanks; ++rank) {
    pending.push_back(Communicator::create_async(options(rank, kRanks)));
    pending.back().on_done([&told] { told.count_down(); });
  }
  told.wait();
  for (const PendingCommunicator& one : pending) EXPECT_TRUE(one.done());
  Group group = all_of(pending);
  expect_works(group);
  EXPECT_EQ(pending[0].wait().status().code(), StatusCode::kInvalidArgument) << "handed over";
}

TEST_F(Pending, WhatIsWrongWithTheOptionsIsTheOutcome) {
  PendingCommunicator pending = Communicator::create_async(options(3, 2));
  EXPECT_EQ(pending.wait().status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(pending.done());
}

TEST_F(Pending, NoCall) {
  PendingCommunicator none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.done());
  none.abort();
  none.on_done([] { ADD_FAILURE() << "called"; });
  EXPECT_EQ(none.wait().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(Pending, AbortEndsItAtOnceAndTellsRanksThatWait) {
  for (int aborted = 0; aborted < 2; ++aborted) {
    store_ = std::make_shared<InprocRendezvous>();
    std::vector<PendingCommunicator> pending;
    for (int rank = 0; rank < 2; ++rank)
      pending.push_back(Communicator::create_async(options(rank, 3)));
    // Ranks that have met are told when one of them leaves.
    const std::string root = "leeway/0/world/root";
    ASSERT_TRUE(store_->get(root, 10s).ok());
    pending[aborted].abort();
    EXPECT_TRUE(pending[aborted].done());
    EXPECT_EQ(pending[aborted].wait().status().code(), StatusCode::kCancelled);
    if (aborted == 1) {
      // Rank 0 may not have come to the meeting yet, so it need not hear of this.
      PendingCommunicator other = std::move(pending[0]);
      other.abort();
      EXPECT_EQ(other.wait().status().code(), StatusCode::kCancelled);
      continue;
    }
    const Status status = pending[1].wait().status();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.c_str();
    EXPECT_THAT(std::string(status.text()), HasSubstr("rank 0"));
  }
  EXPECT_LT(Clock::now() - start_, kNobodyWaitedFor);
}

TEST_F(Pending, DroppingItEndsItsThreadWhereverItWaits) {
  const std::size_t before = testing::threads_now();
  // Rank 0 waits for rank 1; then rank 1 waits for rank 0's invitation; last, rank 1 waits for a
  // server that is not there.
  { auto root = Communicator::create_async(options(0, 2)); }
  store_ = std::make_shared<InprocRendezvous>();
  { auto guest = Communicator::create_async(options(1, 2)); }
  store_ = nullptr;
  Options far = options(1, 2);
  far.rendezvous = "127.0.0.1:9";
  { auto guest = Communicator::create_async(far); }
  EXPECT_LT(Clock::now() - start_, kNobodyWaitedFor);
  EXPECT_TRUE(testing::threads_fall_to(before));
}

TEST_F(Pending, ItsCallbackMayDropIt) {
  auto pending = std::make_unique<PendingCommunicator>(Communicator::create_async(options(0, 1)));
  std::latch dropped(1);
  pending->on_done([&] {
    pending.reset();
    dropped.count_down();
  });
  dropped.wait();
  EXPECT_EQ(pending, nullptr);
}

TEST_F(Pending, AForkedChildGetsAnError) {
  auto pending = Communicator::create_async(options(0, 2));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    const bool fine = pending.wait().status().code() == StatusCode::kUnavailable;
    pending = PendingCommunicator();
    _exit(fine ? 0 : 1);
  }
  int outcome = 0;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
}

// ---- split and shrink ----

TEST(PendingSplit, ManyAreUnderWayAtOnceInTheOrderOfTheirCalls) {
  Group world = make_pending_group(4);
  std::vector<PendingCommunicator> halves;
  std::vector<PendingCommunicator> all;
  for (auto& rank : world) {
    halves.push_back(rank->split_async(rank->rank() % 2, 0));
    all.push_back(rank->split_async(0, -rank->rank()));
  }
  Group reversed = all_of(all);
  Group half = all_of(halves);
  world.clear();
  expect_works(reversed);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(half[rank]->size(), 2);
    EXPECT_EQ(half[rank]->rank(), rank / 2);
    EXPECT_EQ(reversed[rank]->rank(), 3 - rank);
  }
}

TEST(PendingSplit, MayOutliveTheCommunicatorAndFailsWithIt) {
  Group world = make_pending_group(2);
  auto alone = world[0]->split_async(0, 0);
  bool called = false;
  alone.on_done([&] { called = true; });
  EXPECT_FALSE(alone.done()) << "rank 1 has not called";
  world[0]->abort();
  EXPECT_EQ(alone.wait().status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(called);
  world.clear();
  EXPECT_TRUE(alone.done());
}

TEST(PendingSplit, WhoTakesItBackTellsThoseWhoAreInIt) {
  Group world = make_pending_group(2);
  auto mine = world[0]->split_async(0, 0);
  mine.abort();
  EXPECT_EQ(mine.wait().status().code(), StatusCode::kCancelled);
  auto peer = world[1]->split(0, 0);
  ASSERT_TRUE(peer.ok()) << peer.status().c_str();
  std::vector<float> data(100);
  const auto report = (*peer)->all_reduce(std::span(data), {.delivery = exact(kJoinTimeout)});
  EXPECT_FALSE(report.ok());
  EXPECT_NE(report.status().code(), StatusCode::kDeadlineExceeded) << report.status().c_str();
}

TEST(PendingSplit, ItsCallbackMustNotWaitWhenOrWhereverItIsMade) {
  Group world = make_pending_group(2);
  std::vector<PendingCommunicator> pending;
  for (auto& rank : world) pending.push_back(rank->split_async(0, 0));
  std::vector<StatusCode> told(2, StatusCode::kOk);
  std::latch called(2);
  for (std::size_t i = 0; i < 2; ++i) {
    pending[i].on_done([&, i] {
      told[i] = world[i]->barrier(100ms).status().code();
      called.count_down();
    });
  }
  called.wait();
  EXPECT_THAT(told, Each(StatusCode::kInvalidArgument));
}

TEST(PendingSplit, ABlockingOneInACallbackTakesNoPart) {
  Group world = make_pending_group(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(100, 1.0f));
  std::latch called(1);
  Status refused;
  Work first = world[0]->all_reduce_async(std::span(data[0]));
  first.on_done([&] {
    refused = world[0]->split(1, 0).status();
    called.count_down();
  });
  Work second = world[1]->all_reduce_async(std::span(data[1]));
  called.wait();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.c_str();
  EXPECT_TRUE(second.wait().ok());
  std::vector<PendingCommunicator> pending;
  for (auto& rank : world) pending.push_back(rank->split_async(0, 0));
  Group both = all_of(pending);
  EXPECT_EQ(both[0]->size(), 2) << "the refused call was no split";
}

TEST(PendingSplit, AWrongColorOfOneRankIsToldToTheOthers) {
  Group world = make_pending_group(3);
  std::vector<PendingCommunicator> pending;
  for (auto& rank : world) pending.push_back(rank->split_async(rank->rank() == 1 ? -7 : 0, 0));
  for (int rank = 0; rank < 3; ++rank) {
    const Status status = pending[static_cast<std::size_t>(rank)].wait().status();
    EXPECT_EQ(status.code(), rank == 1 ? StatusCode::kInvalidArgument : StatusCode::kMismatch);
    EXPECT_THAT(status.c_str(), HasSubstr(rank == 1 ? "color -7" : "rank 1 refused its own call"));
  }
  expect_works(world);
}

TEST(PendingSplit, WrongColor) {
  Group world = make_pending_group(1);
  EXPECT_EQ(world[0]->split_async(-2, 0).wait().status().code(), StatusCode::kInvalidArgument);
}

TEST(PendingShrink, OfTheLiving) {
  Group world = make_pending_group(3);
  const std::vector<Rank> excluded = {1};
  std::vector<PendingCommunicator> pending;
  pending.push_back(world[0]->shrink_async(excluded));
  pending.push_back(world[2]->shrink_async(excluded));
  Group rest = all_of(pending);
  expect_works(rest);
}

TEST(PendingShrink, IsTakenBackWhileItWaitsForOthers) {
  Options options;
  options.join_timeout = kJoinTimeout;
  Group world = make_pending_group(3, options);
  const auto start = Clock::now();
  const std::vector<Rank> excluded = {1};
  {
    auto pending = world[0]->shrink_async(excluded);
    world[0].reset();
    pending.abort();
    EXPECT_EQ(pending.wait().status().code(), StatusCode::kCancelled);
  }
  EXPECT_LT(Clock::now() - start, kNobodyWaitedFor);
}

TEST(PendingShrink, WrongRank) {
  Group world = make_pending_group(1);
  const std::vector<Rank> excluded = {7};
  EXPECT_EQ(world[0]->shrink_async(excluded).wait().status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leeway
