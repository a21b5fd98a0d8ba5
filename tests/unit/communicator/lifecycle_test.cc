// Tests communicators that are made from others, aborted, called from callbacks, and forked, over
// in-process transports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include "leeway/communicator.h"
#include "support/process_threads.h"
#include "support/seeds.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Group = std::vector<std::unique_ptr<Communicator>>;
using Clock = std::chrono::steady_clock;

// Time limit of a step that must not wait for a missing rank. With a silent peer, leaving takes at
// least two seconds, and an operation lasts until its deadline.
constexpr Duration kNobodyMissed = 1s;

Group make_living_group(int size, const Options& options = {}) {
  auto group = Communicator::create_inproc(size, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  return std::move(*group);
}

template <typename Body>
void on_each_thread(Group& group, Body&& body) {
  std::vector<std::thread> threads;
  for (auto& communicator : group)
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  for (auto& thread : threads) thread.join();
}

// Gathers each rank's `number` in rank order.
std::vector<int> members(Communicator& communicator, int number) {
  std::vector<int> all(static_cast<std::size_t>(communicator.size()), -1);
  const std::vector<int> own = {number};
  const auto report =
      communicator.all_gather(std::span<const int>(own), std::span(all), {.delivery = exact(10s)});
  EXPECT_TRUE(report.ok()) << report.status().c_str();
  return all;
}

std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// ---- split ----

TEST(Split, RanksOfAColorAreOrderedByKeyThenRank) {
  Group group = make_living_group(5);
  on_each_thread(group, [](Communicator& world) {
    const int rank = world.rank();
    auto part = world.split(rank % 2, rank < 2 ? 7 : 3);
    ASSERT_TRUE(part.ok()) << part.status().c_str();
    if (rank % 2 == 0) {
      EXPECT_THAT(members(**part, rank), ElementsAre(2, 4, 0));
    } else {
      EXPECT_THAT(members(**part, rank), ElementsAre(3, 1));
    }
    EXPECT_EQ((*part)->options().world_size, (*part)->size());
    EXPECT_EQ((*part)->options().rank, (*part)->rank());
  });
}

TEST(Split, ARankWithoutColorGetsNone) {
  Group group = make_living_group(3);
  on_each_thread(group, [](Communicator& world) {
    auto part = world.split(world.rank() == 1 ? Communicator::kNoColor : 0, 0);
    ASSERT_TRUE(part.ok()) << part.status().c_str();
    EXPECT_EQ(*part == nullptr, world.rank() == 1);
    if (*part) {
      EXPECT_THAT(members(**part, world.rank()), ElementsAre(0, 2));
    }
  });
}

TEST(Split, OfASplitOutlivesBoth) {
  Group group = make_living_group(4);
  Group pairs(4);
  on_each_thread(group, [&](Communicator& world) {
    auto half = world.split(0, -world.rank());
    ASSERT_TRUE(half.ok());
    auto pair = (*half)->split((*half)->rank() / 2, 0);
    ASSERT_TRUE(pair.ok());
    pairs[world.rank()] = std::move(*pair);
  });
  group.clear();
  on_each_thread(pairs, [](Communicator& pair) {
    std::vector<float> data(10'000, 1.0f);
    EXPECT_TRUE(pair.all_reduce(std::span(data)).ok());
    EXPECT_THAT(data, Each(2.0f));
  });
}

TEST(Split, WhereOthersCallSomethingElseIsAMismatchThatNamesBoth) {
  Options options;
  options.join_timeout = 5s;
  Group group = make_living_group(2, options);
  on_each_thread(group, [](Communicator& world) {
    Status status;
    if (world.rank() == 0) {
      status = world.split(0, 0).status();
    } else {
      std::vector<int> in(3);
      std::vector<int> out(6);
      status = world.all_gather(std::span<const int>(in), std::span(out), {.delivery = exact(5s)})
                   .status();
    }
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.c_str(), HasSubstr("split"));
    EXPECT_THAT(status.c_str(), HasSubstr("all_gather"));
  });
}

TEST(Split, ANegativeColorThatIsNotNoColorIsRefused) {
  Group group = make_living_group(1);
  EXPECT_EQ(group[0]->split(-2, 0).status().code(), StatusCode::kInvalidArgument);
}

TEST(Split, ManyCommunicatorsShareOneThread) {
  constexpr int kRanks = 4;
  constexpr int kCommunicators = 64;
  const std::size_t before = testing::threads_now();
  Group group = make_living_group(kRanks);
  std::vector<Group> parts(kRanks);
  on_each_thread(group, [&](Communicator& world) {
    for (int i = 0; i < kCommunicators; ++i) {
      auto part = world.split(world.rank() % (1 + i % 3), 0);
      ASSERT_TRUE(part.ok()) << part.status().c_str();
      parts[world.rank()].push_back(std::move(*part));
    }
  });
  EXPECT_TRUE(testing::threads_fall_to(before + kRanks)) << "one thread a process";
  on_each_thread(group, [&](Communicator& world) {
    std::vector<std::vector<float>> data;
    std::vector<Work> works;
    for (auto& part : parts[world.rank()]) {
      data.emplace_back(3000, 1.0f);
      works.push_back(part->all_reduce_async(std::span(data.back())));
    }
    const Status status = Work::wait_all(works);
    EXPECT_TRUE(status.ok()) << status.c_str();
    for (int i = 0; i < kCommunicators; ++i)
      EXPECT_THAT(data[i], Each(static_cast<float>(parts[world.rank()][i]->size())));
  });
}

TEST(Split, OneThatWaitsForItsDeadlineDelaysNoOther) {
  Group group = make_living_group(2);
  on_each_thread(group, [](Communicator& world) {
    auto stuck = world.split(0, 0);
    auto other = world.split(0, 0);
    ASSERT_TRUE(stuck.ok() && other.ok());
    std::vector<float> lonely(1000, 1.0f);
    Work waiting;
    if (world.rank() == 0)
      waiting = (*stuck)->all_reduce_async(std::span(lonely), {.delivery = exact(5s)});
    for (int i = 0; i < 50; ++i) {
      std::vector<float> data(1000, 1.0f);
      ASSERT_TRUE((*other)->all_reduce(std::span(data)).ok());
    }
    if (world.rank() == 0) {
      EXPECT_FALSE(waiting.done()) << "all that took less than the deadline of the other";
    }
    if (world.rank() == 0) {
      EXPECT_EQ(waiting.wait().status().code(), StatusCode::kDeadlineExceeded);
    }
    (void)world.barrier();
  });
}

// ---- shrink ----

TEST(Shrink, LeavesOutRanksThatNeedNotCall) {
  Group group = make_living_group(4);
  on_each_thread(group, [](Communicator& world) {
    if (world.rank() == 2) return;
    const std::vector<Rank> dead = {2};
    auto rest = world.shrink(dead);
    ASSERT_TRUE(rest.ok()) << rest.status().c_str();
    EXPECT_THAT(members(**rest, world.rank()), ElementsAre(0, 1, 3));
  });
}

TEST(Shrink, WorksAfterAbort) {
  Group group = make_living_group(3);
  on_each_thread(group, [](Communicator& world) {
    if (world.rank() == 0) return;
    std::vector<float> data(1000, 1.0f);
    Work stuck = world.all_reduce_async(std::span(data), {.delivery = exact(no_deadline)});
    world.abort();
    EXPECT_EQ(stuck.wait().status().code(), StatusCode::kCancelled);
    const std::vector<Rank> dead = {0};
    auto rest = world.shrink(dead);
    ASSERT_TRUE(rest.ok()) << rest.status().c_str();
    EXPECT_THAT(members(**rest, world.rank()), ElementsAre(1, 2));
  });
}

TEST(Shrink, RanksThatExcludeDifferentOnesDoNotMeet) {
  Options options;
  options.join_timeout = 300ms;
  Group group = make_living_group(3, options);
  on_each_thread(group, [](Communicator& world) {
    if (world.rank() == 2) return;
    const std::vector<Rank> none;
    const std::vector<Rank> two = {2};
    const auto rest = world.shrink(world.rank() == 0 ? none : two);
    EXPECT_EQ(rest.status().code(), StatusCode::kUnavailable);
  });
}

TEST(Shrink, BadRanksAreRefused) {
  Group group = make_living_group(2);
  const std::vector<Rank> self = {0};
  const std::vector<Rank> nobody = {7};
  EXPECT_THAT(group[0]->shrink(self).status().c_str(), HasSubstr("rank 0 is excluded"));
  EXPECT_THAT(group[0]->shrink(nobody).status().c_str(), HasSubstr("rank 7 does not exist"));
}

// ---- abort ----

TEST(Abort, IsSeenByPeersAsOneThatLeft) {
  Group group = make_living_group(2);
  EXPECT_FALSE(group[1]->peer_left());
  float value = 0;
  Work waiting = group[1]->recv_async(std::span(&value, 1), 0, {.delivery = exact(no_deadline)});
  group[0]->abort();
  EXPECT_FALSE(waiting.wait().ok());  // waits, and drives until the good-bye has come
  EXPECT_TRUE(group[1]->peer_left());
}

TEST(Abort, FailsWhatIsInFlightAtOnceAndWhatComesLater) {
  Group group = make_living_group(3);
  std::vector<std::vector<float>> data(32, std::vector<float>(20'000, 1.0f));
  std::vector<Work> works;
  for (auto& one : data)
    works.push_back(group[0]->all_reduce_async(std::span(one), {.delivery = exact(no_deadline)}));
  EXPECT_EQ(group[0]->state(), StatusCode::kOk);
  const auto start = Clock::now();
  group[0]->abort();
  for (Work& work : works) {
    EXPECT_TRUE(work.done());
    EXPECT_EQ(work.wait().status().code(), StatusCode::kCancelled);
  }
  EXPECT_LT(Clock::now() - start, kNobodyMissed);
  data.clear();  // the memory may be freed
  EXPECT_EQ(group[0]->state(), StatusCode::kCancelled);
  EXPECT_THAT(group[0]->status().c_str(), HasSubstr("aborted"));
  std::vector<float> later(10);
  EXPECT_EQ(group[0]->all_reduce(std::span(later)).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(group[0]->split(0, 0).status().code(), StatusCode::kCancelled);
  group[0]->abort();  // again: nothing happens
  const auto closing = Clock::now();
  group[0].reset();
  EXPECT_LT(Clock::now() - closing, kNobodyMissed);
}

TEST(Abort, PeersLearnOfIt) {
  Group group = make_living_group(2);
  std::vector<float> data(1000, 1.0f);
  Work work = group[1]->all_reduce_async(std::span(data), {.delivery = exact(no_deadline)});
  group[0]->abort();
  EXPECT_EQ(work.wait().status().code(), StatusCode::kPeerLost);
}

TEST(Abort, FromAnotherThreadEndsABlockingCall) {
  Group group = make_living_group(2);
  auto call = std::async(std::launch::async, [&] {
    std::vector<float> data(1000, 1.0f);
    return group[0]->all_reduce(std::span(data), {.delivery = exact(no_deadline)}).status();
  });
  std::this_thread::sleep_for(20ms);
  group[0]->abort();
  EXPECT_EQ(call.get().code(), StatusCode::kCancelled);
}

TEST(Abort, OfOneCommunicatorLeavesTheOthersAlone) {
  Group group = make_living_group(2);
  on_each_thread(group, [](Communicator& world) {
    auto part = world.split(0, 0);
    ASSERT_TRUE(part.ok());
    (*part)->abort();
    std::vector<float> data(1000, 1.0f);
    EXPECT_TRUE(world.all_reduce(std::span(data)).ok());
  });
}

// ---- completion ----

TEST(WaitFor, EndsWhenTimeIsUpAndTheOperationGoesOn) {
  Group group = make_living_group(2);
  std::vector<float> mine(100, 1.0f);
  std::vector<float> theirs(100, 2.0f);
  Work work = group[0]->all_reduce_async(std::span(mine));
  EXPECT_FALSE(work.wait_for(Duration(0)));
  const auto begun = Clock::now();
  EXPECT_FALSE(work.wait_for(20ms));
  EXPECT_GE(Clock::now() - begun, 20ms);
  EXPECT_LT(Clock::now() - begun, kNobodyMissed);
  std::thread other([&] { EXPECT_TRUE(group[1]->all_reduce(std::span(theirs)).ok()); });
  EXPECT_TRUE(work.wait_for(no_deadline));
  EXPECT_TRUE(work.done());
  EXPECT_TRUE(work.wait_for(Duration(0)));
  other.join();
  EXPECT_THAT(mine, Each(3.0f));
  EXPECT_FALSE(Work().wait_for(1s));
}

TEST(WaitFor, WhileAnotherThreadDrives) {
  Group group = make_living_group(2);
  std::vector<float> first(100, 1.0f);
  std::vector<float> second(100, 1.0f);
  std::thread driving([&] { EXPECT_TRUE(group[0]->all_reduce(std::span(first)).ok()); });
  Work work = group[0]->all_reduce_async(std::span(second));
  EXPECT_FALSE(work.wait_for(20ms));
  std::thread other([&] {
    std::vector<float> theirs(100, 1.0f);
    EXPECT_TRUE(group[1]->all_reduce(std::span(theirs)).ok());
    EXPECT_TRUE(group[1]->all_reduce(std::span(theirs)).ok());
  });
  EXPECT_TRUE(work.wait_for(10s));
  other.join();
  driving.join();
}

TEST(OnDone, CallsOnceWhoeverWaits) {
  Group group = make_living_group(2);
  std::atomic<int> calls{0};
  on_each_thread(group, [&](Communicator& world) {
    for (int i = 0; i < 100; ++i) {
      std::vector<float> data(1000, 1.0f);
      Work work = world.all_reduce_async(std::span(data));
      work.on_done([&] { ++calls; });
      ASSERT_TRUE(work.wait().ok());
      work.on_done([&] { ++calls; });  // the operation is done, so the callback runs at once
    }
    (void)world.barrier();
  });
  group.clear();
  EXPECT_EQ(calls, 400);
}

TEST(OnDone, NeedsNobodyWhoWaits) {
  Group group = make_living_group(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0f));
  std::promise<void> both;
  std::atomic<int> left{2};
  for (int rank = 0; rank < 2; ++rank) {
    Work work = group[rank]->all_reduce_async(std::span(data[rank]));
    work.on_done([&] {
      if (--left == 0) both.set_value();
    });
  }
  ASSERT_EQ(both.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_THAT(data[0], Each(2.0f));
}

TEST(OnDone, MayStartTheNextOperation) {
  Group group = make_living_group(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0f));
  std::promise<void> both;
  std::atomic<int> left{2};
  std::vector<Work> second(2);
  for (int rank = 0; rank < 2; ++rank) {
    Work work = group[rank]->all_reduce_async(std::span(data[rank]));
    work.on_done([&, rank] {
      second[rank] = group[rank]->all_reduce_async(std::span(data[rank]));
      second[rank].on_done([&] {
        if (--left == 0) both.set_value();
      });
    });
  }
  ASSERT_EQ(both.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_THAT(data[1], Each(4.0f));
}

TEST(OnDone, ACallbackThatWaitsIsToldNotTo) {
  Group group = make_living_group(2);
  std::promise<Status> blocking;
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0f));
  Work first = group[0]->all_reduce_async(std::span(data[0]));
  first.on_done([&] { blocking.set_value(group[0]->barrier().status()); });
  ASSERT_TRUE(group[1]->all_reduce(std::span(data[1])).ok());
  const Status status = blocking.get_future().get();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.c_str(), HasSubstr("callback"));
}

// The operation is done, so the callback runs within on_done(). A blocking call in the callback
// must be refused, as in every callback.
TEST(OnDone, ACallbackOfADoneOperationThatWaitsIsToldNotTo) {
  Group group = make_living_group(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0f));
  Work first = group[0]->all_reduce_async(std::span(data[0]));
  ASSERT_TRUE(group[1]->all_reduce(std::span(data[1])).ok());
  ASSERT_TRUE(first.wait().ok());
  Status blocking;
  first.on_done([&] {
    blocking = group[0]->barrier(100ms).status();
    EXPECT_TRUE(first.wait().ok());  // waiting for a work that is done is allowed
  });
  EXPECT_EQ(blocking.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(blocking.c_str(), HasSubstr("callback"));
}

TEST(OnDone, ACallbackMayDestroyItsCommunicator) {
  for (const bool waits : {true, false}) {
    Group group = make_living_group(2);
    std::promise<void> destroyed;
    std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0f));
    Work work = group[0]->all_reduce_async(std::span(data[0]));
    work.on_done([&] {
      group[0].reset();
      destroyed.set_value();
    });
    ASSERT_TRUE(group[1]->all_reduce(std::span(data[1])).ok());
    if (waits) {
      EXPECT_TRUE(work.wait().ok());
    }
    ASSERT_EQ(destroyed.get_future().wait_for(10s), std::future_status::ready);
  }
}

TEST(OnDone, ACallUnderWayIsToldThatItsCommunicatorWasDestroyed) {
  Group group = make_living_group(2);
  std::vector<float> values(3, 1.0f);
  Work done = group[0]->all_reduce_async(std::span(values).first(1));
  ASSERT_TRUE(group[1]->all_reduce(std::span(values).last(1)).ok());
  ASSERT_TRUE(done.wait().ok());
  Work begun = group[0]->all_reduce_async(std::span(values).first(1));
  done.on_done([&] { group[0].reset(); });
  EXPECT_EQ(begun.wait().status().code(), StatusCode::kCancelled);
  EXPECT_THAT(begun.wait().status().c_str(), HasSubstr("communicator was destroyed"));
}

TEST(WaitAny, ReturnsTheFirstThatIsDone) {
  Group group = make_living_group(2);
  std::vector<float> never(1000, 1.0f);
  std::vector<float> soon(1000, 1.0f);
  std::vector<Work> works(3);
  EXPECT_EQ(Work::wait_any(works), works.size()) << "no operation";
  works[0] = group[0]->recv_async(std::span(never), 1, {.delivery = exact(no_deadline)});
  works[2] = group[0]->recv_async(std::span(soon), 1, {.delivery = exact(no_deadline)});
  works[0] = Work();
  works[1] = group[0]->all_reduce_async(std::span(never), {.delivery = exact(no_deadline)});
  std::thread peer([&] {
    std::vector<float> data(1000, 3.0f);
    ASSERT_TRUE(group[1]->send(std::span<const float>(data), 0).ok());
    ASSERT_TRUE(group[1]->send(std::span<const float>(data), 0).ok());
  });
  EXPECT_EQ(Work::wait_any(works), 2u);
  EXPECT_THAT(soon, Each(3.0f));
  peer.join();
  group[0]->abort();
}

TEST(Test, DrivesWithoutBlocking) {
  Group group = make_living_group(2);
  on_each_thread(group, [](Communicator& world) {
    std::vector<float> data(1000, 1.0f);
    Work work = world.all_reduce_async(std::span(data));
    while (!work.test()) std::this_thread::yield();
    EXPECT_THAT(data, Each(2.0f));
  });
  EXPECT_FALSE(Work().test());
}

// ---- what is left behind ----

TEST(CreateAndDestroy, LeaveNothing) {
  const auto cycle = [] {
    Group group = make_living_group(3);
    on_each_thread(group, [](Communicator& world) {
      auto part = world.split(0, 0);
      ASSERT_TRUE(part.ok());
      std::vector<float> data(5000, 1.0f);
      ASSERT_TRUE((*part)->all_reduce(std::span(data)).ok());
    });
  };
  cycle();
  const std::size_t threads = testing::threads_now();
  const std::size_t files = entries_of("/proc/self/fd");
  for (int i = 0; i < testing::seeds(25, 100); ++i) cycle();
  EXPECT_TRUE(testing::threads_fall_to(threads));
  EXPECT_EQ(entries_of("/proc/self/fd"), files);
}

TEST(Fork, TheChildGetsErrorsAndEnds) {
  Group group = make_living_group(2);
  std::vector<float> data(1000, 1.0f);
  Work work = group[0]->all_reduce_async(std::span(data), {.delivery = exact(no_deadline)});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    bool fine = work.wait().status().code() == StatusCode::kUnavailable;
    std::vector<float> own(10);
    const Status status = group[0]->all_reduce(std::span(own)).status();
    fine &= status.code() == StatusCode::kUnavailable &&
            std::string(status.text()).find("forked") != std::string::npos;
    fine &= !group[0]->split(0, 0).ok();
    group[0]->abort();
    (void)group[0]->counters();
    group.clear();
    _exit(fine ? 0 : 1);
  }
  int outcome = 0;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
  std::vector<float> peer(1000, 1.0f);
  EXPECT_TRUE(group[1]->all_reduce(std::span(peer)).ok()) << "the parent goes on";
  EXPECT_TRUE(work.wait().ok());
}

}  // namespace
}  // namespace leeway
