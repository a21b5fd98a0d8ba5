// Tests exact calls through memory that all ranks map, by public calls. Ranks are threads with real
// sockets and memory.
#include "communicator/near_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "communicator/memory_sharing.h"
#include "leeway/rendezvous.h"
#include "unit/communicator/near_group.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Makes `calls` all_reduces. Returns the number of ends of calls in rank 0's trace.
std::size_t traced_calls(int calls) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "leeway_near_trace";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  Options options;
  options.trace = folder / "trace.sqlog";
  {
    Group group = near_group(2, options);
    for (int i = 0; i < calls; ++i) {
      on_each(2, [&](std::size_t rank) {
        std::vector<float> values(100);
        EXPECT_TRUE(group[rank]->all_reduce(std::span(values)).ok());
      });
    }
  }
  std::size_t told = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);)
      told += line.find("operation_done") != line.npos && line.find("all_reduce") != line.npos;
  }
  std::filesystem::remove_all(folder);
  return told;
}

TEST_F(NearCallsOfAGroup, AreOfSoManyGroupsAtATime) {
  std::vector<Group> groups;
  while (groups.size() < 20) groups.push_back(near_group(2));
  const auto is_near = [](const Group& group) {
    return counter(*group[0], "near_calls") != UINT64_MAX;
  };
  EXPECT_TRUE(is_near(groups.front()));
  EXPECT_FALSE(is_near(groups.back()));
  expect_sums(groups.back());
  groups.clear();
  EXPECT_TRUE(is_near(near_group(2)));
}

TEST_F(NearCallsOfAGroup, AreToldToObservers) {
  EXPECT_EQ(traced_calls(5) - traced_calls(0), 2u * 5u);
}

TEST_F(NearCallsOfAGroup, SendNoDatagram) {
  Group group = near_group(3);
  const std::uint64_t before = counter(*group[0], "data_sent");
  expect_sums(group);
  EXPECT_EQ(counter(*group[0], "data_sent"), before);
  EXPECT_EQ(counter(*group[0], "near_calls"), 1u);
}

TEST_F(NearCallsOfAGroup, LeaveNoNameBehind) {
  const auto names = [] {
    int left = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      left += entry.path().filename().string().starts_with("leeway-");
    return left;
  };
  const int before = names();
  Group group = near_group(2);
  EXPECT_EQ(names(), before);
}

TEST_F(NearCallsOfAGroup, MayBeStartedInAnyNumberAndEndInOrder) {
  constexpr int kCalls = 40;
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    std::vector<std::vector<float>> values;
    std::vector<Work> works;
    std::atomic<int> called{0};
    for (int i = 0; i < kCalls; ++i)
      values.emplace_back(i % 4 == 0 ? 100'000 : 10, static_cast<float>(i));
    for (auto& one : values) {
      works.push_back(group[rank]->all_reduce_async(std::span(one)));
      works.back().on_done([&called] { ++called; });
    }
    EXPECT_TRUE(group[rank]->barrier().ok());  // queued behind the calls above
    for (int i = 0; i < kCalls; ++i) {
      const auto report = works[static_cast<std::size_t>(i)].wait();
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report->sequence, static_cast<std::uint64_t>(i));
      EXPECT_EQ(values[static_cast<std::size_t>(i)].back(), static_cast<float>(3 * i));
    }
    while (called < kCalls) std::this_thread::yield();
  });
}

TEST_F(NearCallsOfAGroup, MayBeAwaitedInEveryWay) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    std::vector<float> values(1000, 1.0f);
    Work tested = group[rank]->all_reduce_async(std::span(values));
    while (!tested.test()) std::this_thread::yield();
    Work patient = group[rank]->all_reduce_async(std::span(values));
    EXPECT_TRUE(patient.wait_for(60s));
    std::vector<Work> some;
    some.push_back(group[rank]->all_reduce_async(std::span(values)));
    EXPECT_EQ(Work::wait_any(some), 0u);
    EXPECT_TRUE(Work::wait_all(some).ok());
    EXPECT_EQ(values[0], 8.0f);
  });
}

TEST_F(NearCallsOfAGroup, CallbacksMayStartTheNextAndMustNotWait) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    std::vector<float> values(100, 1.0f);
    Work next;
    std::atomic<bool> ready{false};
    StatusCode blocking = StatusCode::kOk;
    Work first = group[rank]->all_reduce_async(std::span(values));
    first.on_done([&] {
      blocking = group[rank]->all_reduce(std::span(values)).status().code();
      next = group[rank]->all_reduce_async(std::span(values));
      ready = true;
    });
    while (!ready) std::this_thread::yield();
    EXPECT_EQ(blocking, StatusCode::kInvalidArgument);
    EXPECT_TRUE(next.wait().ok());
    EXPECT_EQ(values[0], 4.0f);
  });
}

TEST_F(NearCallsOfAGroup, MayComeFromSeveralThreads) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    on_each(3, [&](std::size_t) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(group[rank]->barrier().ok());
    });
  });
  EXPECT_EQ(counter(*group[0], "near_calls"), 300u);
}

TEST_F(NearCallsOfAGroup, AWrongArgumentIsToldToThePeers) {
  Group group = near_group(2);
  std::vector<float> values(10);
  const CollectiveOptions options{.delivery = exact(0s)};
  EXPECT_EQ(group[0]->all_reduce(std::span(values), options).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(group[0]->all_reduce_async(std::span(values), options).wait().status().code(),
            StatusCode::kInvalidArgument);
  for (int call = 0; call < 2; ++call) {
    std::vector<float> right(10);
    const Status told = group[1]->all_reduce(std::span(right)).status();
    EXPECT_EQ(told.code(), StatusCode::kMismatch) << told.c_str();
    EXPECT_THAT(told.c_str(), HasSubstr("rank 0 refused its own call (invalid_argument)"));
  }
  expect_sums(group);
}

TEST_F(NearCallsOfAGroup, FailAtTheirDeadlineAndGoOnInStep) {
  Group group = near_group(2);
  std::vector<float> values(10);
  const Status alone = group[0]->all_reduce(std::span(values), {.delivery = exact(20ms)}).status();
  EXPECT_EQ(alone.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(alone.c_str(), HasSubstr("rank 1 has not begun it"));
  const Status late = group[1]->all_reduce(std::span(values)).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.c_str(), HasSubstr("rank 0 gave it up at its own deadline"));
  expect_sums(group);
  EXPECT_EQ(group[0]->state(), StatusCode::kOk);
}

TEST_F(NearCallsOfAGroup, FailAtTheirDeadlineBehindAnotherCall) {
  Group group = near_group(2);
  std::vector<float> first(10, 1.0f);
  std::vector<float> second(10, 1.0f);
  Work before = group[0]->all_reduce_async(std::span(first));
  const Status behind = group[0]->all_reduce(std::span(second), {.delivery = exact(50ms)}).status();
  EXPECT_EQ(behind.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(behind.c_str(), HasSubstr("#1: Timed out (deadline 50 ms): rank 1 has not begun it"));
  EXPECT_FALSE(before.done());
  std::vector<float> other(10, 1.0f);
  EXPECT_TRUE(group[1]->all_reduce(std::span(other)).ok());
  EXPECT_TRUE(before.wait().ok());
  const Status late = group[1]->all_reduce(std::span(other)).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.c_str(), HasSubstr("rank 0 gave it up at its own deadline"));
  expect_sums(group);
}

TEST_F(NearCallsOfAGroup, ACallbackAtADeadlineBehindAnotherCallMayEndTheCommunicator) {
  Group group = near_group(2);
  std::vector<float> values(10);
  const Work before = group[0]->all_reduce_async(std::span(values));
  std::atomic<bool> ended{false};
  Work behind = group[0]->all_reduce_async(std::span(values), {.delivery = exact(30ms)});
  behind.on_done([&] {
    group[0].reset();
    ended = true;
  });
  while (!ended) std::this_thread::yield();
}

TEST_F(NearCallsOfAGroup, AbortCancelsWhatIsUnderWayAndPeersHearOfIt) {
  Group group = near_group(2);
  std::vector<float> values(10);
  Work first = group[0]->all_reduce_async(std::span(values));
  Work second = group[0]->all_reduce_async(std::span(values));
  std::thread aborting([&] { group[0]->abort(); });
  EXPECT_EQ(first.wait().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(second.wait().status().code(), StatusCode::kCancelled);
  aborting.join();
  EXPECT_EQ(group[0]->all_reduce(std::span(values)).status().code(), StatusCode::kCancelled);
  const auto started = std::chrono::steady_clock::now();
  EXPECT_FALSE(group[1]->barrier().ok());
  EXPECT_FALSE(group[1]->barrier().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - started, 20s);
}

// An aborted rank's calls have no number in the group, so peers must not follow them to datagrams.
TEST_F(NearCallsOfAGroup, NobodyFollowsAnAbortedRank) {
  Group group = near_group(2);
  expect_sums(group);
  std::vector<float> values(100, 1.0f);
  group[1]->abort();
  CollectiveOptions lossy;
  lossy.delivery = best_effort(1s);
  EXPECT_FALSE(group[1]->all_reduce(std::span(values), lossy).ok());
  const auto outcome = group[0]->all_reduce(std::span(values));
  EXPECT_EQ(outcome.status().code(), StatusCode::kPeerLost) << outcome.status().c_str();
  EXPECT_EQ(counter(*group[0], "near_elsewhere"), 0u);
}

TEST_F(NearCallsOfAGroup, ABlockedCallIsEndedByAbort) {
  Group group = near_group(2);
  std::thread blocked(
      [&] { EXPECT_EQ(group[0]->barrier().status().code(), StatusCode::kCancelled); });
  while (counter(*group[0], "near_calls") == 0) std::this_thread::yield();
  group[0]->abort();
  blocked.join();
}

// A watchdog may call abort() while another thread waits in a call. That call returns before
// abort() does.
TEST_F(NearCallsOfAGroup, ACommunicatorMayBeDestroyedAsSoonAsAbortEndsItsCall) {
  for (int round = 0; round < 30; ++round) {
    Group group = near_group(2);
    Communicator* const watched = group[0].get();
    std::thread caller([&] {
      EXPECT_EQ(group[0]->barrier().status().code(), StatusCode::kCancelled);
      group[0].reset();
    });
    while (counter(*watched, "near_calls") == 0) std::this_thread::yield();
    watched->abort();
    caller.join();
  }
}

// A communicator that is destroyed in a callback cannot wait for its calls there, so they fail.
TEST_F(NearCallsOfAGroup, ACallWhoseCommunicatorIsDestroyedSaysSo) {
  Group group = near_group(2);
  std::vector<float> values(4, 1.0f);
  Work done = group[0]->all_reduce_async(std::span(values).first(1));
  ASSERT_TRUE(group[1]->all_reduce(std::span(values).last(1)).ok());
  ASSERT_TRUE(done.wait().ok());
  Work begun = group[0]->all_reduce_async(std::span(values).first(2));
  Work next = group[0]->all_reduce_async(std::span(values).last(2));
  done.on_done([&] { group[0].reset(); });
  EXPECT_THAT(begun.wait().status().c_str(), HasSubstr("communicator was destroyed"));
  EXPECT_THAT(next.wait().status().c_str(), HasSubstr("communicator was destroyed"));
}

// Small sends are done when they have been copied. The destructor cancels the barrier, for which it
// waits in vain, and must still deliver the sends.
TEST_F(NearCallsOfAGroup, SendsThatAreDoneArriveThoughTheDestructorCancelsACall) {
  Group group = near_group(2);
  std::vector<float> sent(4, 7.0f);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(group[0]->send(std::span(sent), 1).ok());
  Work never = group[0]->barrier_async();
  std::thread leaving([&] { group[0].reset(); });
  EXPECT_EQ(never.wait().status().code(), StatusCode::kCancelled);
  for (int i = 0; i < 20; ++i) {
    std::vector<float> received(4);
    const auto outcome = group[1]->recv(std::span(received), 0);
    ASSERT_TRUE(outcome.ok()) << i << ": " << outcome.status().c_str();
    EXPECT_EQ(received, sent);
  }
  leaving.join();
}

TEST_F(NearCallsOfAGroup, ARankThatIsGoneEndsThoseOfOthers) {
  Group group = near_group(2);
  expect_sums(group);
  std::thread leaving([&] { group[0].reset(); });
  const Status status = group[1]->barrier().status();
  EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.c_str();
  group[1].reset();
  leaving.join();
}

TEST_F(NearCallsOfAGroup, EndWithTheirCommunicatorInACallback) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    std::vector<float> values(10);
    std::atomic<bool> ended{false};
    Work work = group[rank]->all_reduce_async(std::span(values));
    work.on_done([&] {
      group[rank].reset();
      ended = true;
    });
    while (!ended) std::this_thread::yield();
  });
}

// The call whose callback destroys the communicator takes another route than the call before it,
// which is still in memory.
TEST_F(NearCallsOfAGroup, EndWithTheirCommunicatorInACallbackOfACallBehindThem) {
  for (int i = 0; i < 50; ++i) {
    Group group = near_group(2);
    std::atomic<int> queued{0};
    on_each(2, [&](std::size_t rank) {
      std::vector<float> values(10);
      std::atomic<bool> ended{false};
      if (rank == 1) {
        while (queued == 0) std::this_thread::yield();
      }
      const Work first = group[rank]->all_reduce_async(std::span(values));
      Work refused = group[rank]->all_reduce_async(std::span(values), {.tag = 5});
      refused.on_done([&] {
        group[rank].reset();
        ended = true;
      });
      ++queued;
      while (!ended) std::this_thread::yield();
    });
  }
}

TEST_F(NearCallsOfAGroup, AreLetEndWhereTheirCommunicatorGoes) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    std::vector<float> values(100'000, 1.0f);
    std::vector<Work> works;
    for (int i = 0; i < 5; ++i) works.push_back(group[rank]->all_reduce_async(std::span(values)));
    group[rank].reset();
    for (Work& work : works) EXPECT_TRUE(work.wait().ok()) << work.wait().status().c_str();
    EXPECT_EQ(values[0], 32.0f);
  });
}

TEST_F(NearCallsOfAGroup, SplitMakesAGroupThatWorks) {
  Group group = near_group(3);
  Group halves(3);
  on_each(3, [&](std::size_t rank) {
    auto made = group[rank]->split(rank == 2 ? Communicator::kNoColor : 0, 0);
    ASSERT_TRUE(made.ok()) << made.status().c_str();
    halves[rank] = std::move(*made);
  });
  halves.pop_back();
  expect_sums(halves);
  expect_sums(group);
  on_each(2, [&](std::size_t rank) { halves[rank].reset(); });
}

TEST_F(NearCallsOfAGroup, AreRefusedInAForksChild) {
  Group group = near_group(2);
  expect_sums(group);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<float> values(10);
    const bool refused =
        group[0]->all_reduce(std::span(values)).status().code() == StatusCode::kUnavailable &&
        group[0]->all_reduce_async(std::span(values)).wait().status().code() ==
            StatusCode::kUnavailable &&
        group[0]->allocate(10).status().code() == StatusCode::kUnavailable;
    group[0]->abort();
    group.clear();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_sums(group);
}

TEST_F(NearCallsOfAGroup, AllocateGivesMemoryForCallsWithoutCopies) {
  constexpr std::size_t kElements = 300'000;
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    auto memory = group[rank]->allocate(kElements * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status().c_str();
    EXPECT_TRUE(memory->direct());
    const std::span<float> values = memory->as<float>();
    ASSERT_EQ(values.size(), kElements);
    for (int i = 0; i < 3; ++i) {
      std::fill(values.begin(), values.end(), static_cast<float>(rank));
      ASSERT_TRUE(group[rank]->all_reduce(values).ok());
      for (const float value : values) ASSERT_EQ(value, 3.0f);
    }
    EXPECT_EQ(group[rank]->allocate(0).status().code(), StatusCode::kInvalidArgument);
  });
  EXPECT_EQ(counter(*group[0], "near_direct"), 3u);
}

// While such an object lives, no file of this process can grow beyond `bytes`, as if memory were
// full.
class FullMemory {
 public:
  explicit FullMemory(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullMemory() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  void (*signal_)(int);
  rlimit before_{};
};

TEST_F(NearCallsOfAGroup, AnAllocationThatOneRankRefusesTakesItsPlace) {
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    const Status status = group[rank]->allocate(rank == 1 ? 0 : 4096).status();
    EXPECT_EQ(status.code(), rank == 1 ? StatusCode::kInvalidArgument : StatusCode::kMismatch)
        << status.c_str();
  });
  expect_sums(group);
}

TEST_F(NearCallsOfAGroup, PeersThatLeftAreKnownWhenACallSaysSo) {
  Group group = near_group(3);
  expect_sums(group);
  group[2].reset();
  std::vector<float> values(10);
  EXPECT_EQ(group[0]->all_reduce(std::span(values)).status().code(), StatusCode::kPeerLost);
  EXPECT_TRUE(group[0]->peer_left());
  group[1].reset();
}

TEST_F(NearCallsOfAGroup, AreDatagramsWhereThereIsNoRoomForAnArena) {
  const FullMemory full(512 << 10);  // the rings of six ranks are shorter, their arena is not
  Group group = near_group(6);
  EXPECT_EQ(counter(*group[0], "near_calls"), UINT64_MAX);
  EXPECT_EQ(group[0]->transport(), TransportKind::shm);
  expect_sums(group);
  on_each(6, [&](std::size_t rank) {
    const auto memory = group[rank]->allocate(1000);
    ASSERT_TRUE(memory.ok());
    EXPECT_FALSE(memory->direct());
  });
}

TEST_F(NearCallsOfAGroup, AllocateIsOrdinaryMemoryWhereThereIsNoRoom) {
  Group group = near_group(2);
  const FullMemory full(1 << 20);
  on_each(2, [&](std::size_t rank) {
    const auto memory = group[rank]->allocate(2 << 20);
    ASSERT_TRUE(memory.ok()) << memory.status().c_str();
    EXPECT_FALSE(memory->direct());
    std::fill_n(memory->data(), memory->size(), std::byte{1});
  });
  expect_sums(group);
}

TEST(Allocate, IsOrdinaryMemoryWhereRanksShareNone) {
  auto group = Communicator::create_inproc(2);
  ASSERT_TRUE(group.ok());
  const auto memory = (*group)[0]->allocate(10'000);
  ASSERT_TRUE(memory.ok());
  EXPECT_FALSE(memory->direct());
  EXPECT_EQ(memory->size(), 10'000u);
  EXPECT_EQ(memory->data()[9'999], std::byte{0});
}

// Random calls in random order must give the same bits as datagrams.
TEST_F(NearCallsOfAGroup, GiveTheBitsOfDatagrams) {
  constexpr std::size_t kRanks = 3;
  constexpr std::size_t kRegion = 400'000;
  Options by_datagrams;
  auto reference = Communicator::create_inproc(kRanks, by_datagrams);
  ASSERT_TRUE(reference.ok());
  Group group = near_group(kRanks);
  on_each(kRanks, [&](std::size_t rank) {
    auto region = group[rank]->allocate(kRegion).value();
    std::mt19937_64 common(11);       // equal on all ranks
    std::mt19937_64 own(100 + rank);  // different on each rank
    for (int call = 0; call < 150; ++call) {
      const auto dtype = static_cast<DataType>(common() % kDataTypeCount);
      CollectiveOptions options{.op = static_cast<ReduceOp>(common() % kReduceOpCount)};
      if (dtype == DataType::boolean) options.op = ReduceOp::max;
      if (is_floating(dtype) && options.op >= ReduceOp::band) options.op = ReduceOp::avg;
      const std::size_t count = common() % (common() % 4 == 0 ? 50'000 : 500);
      const bool asynchronous = own() % 2 == 0;
      std::vector<std::byte> input(count * size_of(dtype));
      for (std::byte& byte : input) byte = static_cast<std::byte>(own() % 0x70);
      std::vector<std::byte> expected = input;
      std::vector<std::byte> ordinary = input;
      std::byte* data = ordinary.data();
      if (common() % 2 == 0) {
        data = region.data();
        std::copy(input.begin(), input.end(), data);
      }
      ASSERT_TRUE(
          (*reference)[rank]->all_reduce(TensorView{expected.data(), count, dtype}, options).ok());
      const TensorView tensor{data, count, dtype};
      const auto report = asynchronous ? group[rank]->all_reduce_async(tensor, options).wait()
                                       : group[rank]->all_reduce(tensor, options);
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), data))
          << to_string(options.op) << " of " << count << " " << to_string(dtype);
    }
  });
  EXPECT_GT(counter(*group[0], "near_direct"), 5u);
}

}  // namespace
}  // namespace leeway::internal
