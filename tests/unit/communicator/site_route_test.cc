// Tests communicators whose ranks name sites. Ranks are threads over UDP on loopback, each with a
// socket of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kSiteRanks = 4;
constexpr std::size_t kLarge = 100'000;
using SitesGroup = std::array<std::unique_ptr<Communicator>, kSiteRanks>;

class Sites : public ::testing::Test {
 protected:
  void meet(const std::array<const char*, kSiteRanks>& sites, const FaultOptions& faults = {}) {
    on_all([&](int rank) {
      Options options;
      options.store = store_;
      options.transport = TransportKind::udp;
      options.bind_address = "127.0.0.1";
      options.rank = rank;
      options.world_size = kSiteRanks;
      options.join_timeout = 20s;
      options.site = sites[static_cast<std::size_t>(rank)];
      options.faults = faults;
      options.lanes = lanes_;
      auto made = Communicator::create(options);
      ASSERT_TRUE(made.ok()) << made.status().c_str();
      group_[static_cast<std::size_t>(rank)] = std::move(*made);
    });
  }
  static void on_all(const std::function<void(int rank)>& act) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kSiteRanks; ++rank) threads.emplace_back(act, rank);
    for (std::thread& thread : threads) thread.join();
  }
  Communicator& at(int rank) { return *group_[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Rendezvous> store_ = std::make_shared<InprocRendezvous>();
  SitesGroup group_;
  int lanes_ = 1;
};

TEST_F(Sites, LargeCallsGoInHopsAndSmallOnesStraight) {
  meet({"a", "b", "a", "b"});
  on_all([&](int rank) {
    std::vector<float> data(kLarge, static_cast<float>(rank));
    auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->sites, 2u);
    EXPECT_THAT(data, Each(6.0f));
    std::vector<double> few(100, 1.0);
    report = at(rank).all_reduce(std::span(few));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->sites, 0u);
    EXPECT_THAT(few, Each(4.0));
  });
}

// Each hop has counters of its own.
TEST_F(Sites, CountersTellTheHopsApart) {
  meet({"a", "b", "a", "b"});
  on_all([&](int rank) {
    std::vector<float> data(kLarge, 1.0f);
    ASSERT_TRUE(at(rank).all_reduce(std::span(data)).ok());
    std::map<std::string, std::uint64_t> rows;
    for (const auto& [name, count] : at(rank).counters()) rows[name] = count;
    EXPECT_GT(rows["reduce_data_sent"], 0u);
    EXPECT_GT(rows["across_data_sent"], 0u);
    EXPECT_GT(rows["spread_data_sent"], 0u);
    EXPECT_EQ(rows["data_sent"], 0u);
  });
}

// The hop between sites is an ordinary call, so it is sliced over lanes.
TEST_F(Sites, HopsAcrossGoOverLanes) {
  lanes_ = 2;
  meet({"a", "a", "b", "b"});
  on_all([&](int rank) {
    constexpr std::size_t kMibs = 4 * kLarge * 3;  // half of it, more than two MiB, goes across
    std::vector<float> data(kMibs, 1.0f);
    const auto lane_bytes = [&] {
      for (const auto& [name, count] : at(rank).counters()) {
        if (name == "lane1_bytes_sent") return count;
      }
      return std::uint64_t{0};
    };
    const std::uint64_t before = lane_bytes();
    const auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->sites, 2u);
    EXPECT_EQ(std::count(data.begin(), data.end(), 4.0f), static_cast<std::ptrdiff_t>(kMibs));
    EXPECT_GT(lane_bytes() - before, kMibs);  // a quarter of the bytes: half of the hop across
  });
}

TEST_F(Sites, UnequalOrUnnamedSitesLeaveCallsAsTheyAre) {
  for (const auto& sites : {std::array{"a", "a", "a", "b"}, std::array{"a", "a", "b", ""},
                            std::array{"host", "host", "host", "host"}}) {
    meet(sites);
    on_all([&](int rank) {
      std::vector<float> data(kLarge, 1.0f);
      const auto report = at(rank).all_reduce(std::span(data));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report->sites, 0u);
    });
    on_all([&](int rank) { group_[static_cast<std::size_t>(rank)].reset(); });
  }
}

TEST_F(Sites, ManyCallsOfAllKindsAreUnderWayAtOnce) {
  meet({"a", "a", "b", "b"});
  on_all([&](int rank) {
    constexpr int kCalls = 6;
    std::vector<std::vector<float>> sums(kCalls);
    std::vector<std::vector<float>> gathered(kCalls);
    std::vector<std::vector<float>> scattered(kCalls);
    std::vector<std::vector<float>> inputs(kCalls);
    std::vector<Work> works;
    for (int i = 0; i < kCalls; ++i) {
      const auto n = static_cast<std::size_t>(i);
      sums[n].assign(kLarge, static_cast<float>(rank + i));
      inputs[n].assign(kLarge, static_cast<float>(rank * 10 + i));
      scattered[n].resize(kLarge / kSiteRanks);
      gathered[n].resize(kLarge * kSiteRanks);
      works.push_back(at(rank).all_reduce_async(std::span(sums[n])));
      works.push_back(at(rank).reduce_scatter_async(std::span(std::as_const(inputs[n])),
                                                    std::span(scattered[n])));
      works.push_back(
          at(rank).all_gather_async(std::span(std::as_const(inputs[n])), std::span(gathered[n])));
    }
    std::atomic<int> called{0};
    for (Work& work : works) work.on_done([&] { ++called; });
    const std::size_t first = Work::wait_any(works);
    EXPECT_TRUE(works[first].done());
    while (!works.back().test()) std::this_thread::yield();
    ASSERT_TRUE(Work::wait_all(works).ok());
    for (int i = 0; i < kCalls; ++i) {
      const auto n = static_cast<std::size_t>(i);
      EXPECT_THAT(sums[n], Each(static_cast<float>(6 + 4 * i)));
      EXPECT_THAT(scattered[n], Each(static_cast<float>(60 + 4 * i)));
      for (std::size_t from = 0; from < kSiteRanks; ++from)
        EXPECT_EQ(gathered[n][from * kLarge + 17], static_cast<float>(from * 10 + n));
    }
    while (called != 3 * kCalls) std::this_thread::yield();
  });
}

TEST_F(Sites, ACallbackMayStartTheNextCall) {
  meet({"a", "a", "b", "b"});
  on_all([&](int rank) {
    std::vector<float> first(kLarge, 1.0f);
    std::vector<float> second(kLarge, 2.0f);
    std::atomic<bool> started{false};
    Work next;
    Work work = at(rank).all_reduce_async(std::span(first));
    work.on_done([&] {
      next = at(rank).all_reduce_async(std::span(second));
      started = true;
    });
    ASSERT_TRUE(work.wait().ok());
    while (!started) std::this_thread::yield();
    ASSERT_TRUE(next.wait().ok());
    EXPECT_THAT(second, Each(8.0f));
  });
}

TEST_F(Sites, LossyCallsAgreeOnAllRanks) {
  FaultOptions faults;
  faults.loss = 0.1;
  meet({"a", "b", "a", "b"}, faults);
  std::array<std::vector<float>, kSiteRanks> data;
  on_all([&](int rank) {
    auto& own = data[static_cast<std::size_t>(rank)];
    double lost = 0.0;
    for (int i = 0; i < 8; ++i) {
      own.assign(kLarge, static_cast<float>(rank));
      const auto report =
          at(rank).all_reduce(std::span(own), {.op = ReduceOp::avg, .delivery = best_effort(5s)});
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report->sites, 2u);
      EXPECT_TRUE(report->complete);
      lost += report->loss;
    }
    EXPECT_GT(lost, 0.0);
  });
  for (const auto& other : data) EXPECT_EQ(other, data[0]);
}

TEST_F(Sites, WhatIsWrongIsSaidBeforeAnythingIsSent) {
  meet({"a", "a", "b", "b"});
  std::vector<float> data(kLarge);
  std::vector<double> weights(kSiteRanks, 1.0);
  auto report = at(0).all_reduce(std::span(std::as_const(data)), std::span(data).first(kLarge - 1));
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  report = at(0).all_reduce(std::span(data), {.op = ReduceOp::avg, .owner_weights = weights});
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().c_str(), HasSubstr("owner_weights need confirm_use"));
}

TEST_F(Sites, AbortEndsCallsAtOnce) {
  meet({"a", "a", "b", "b"});
  std::vector<float> data(kLarge);
  Work work = at(1).all_reduce_async(std::span(data));  // the others never call
  at(1).abort();
  EXPECT_EQ(work.wait().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(at(1).all_reduce(std::span(data)).status().code(), StatusCode::kCancelled);
}

TEST_F(Sites, ADeadlineNamesTheRankThatDidNotCall) {
  meet({"a", "a", "b", "b"});
  std::array<std::string, kSiteRanks> texts;
  on_all([&](int rank) {
    ASSERT_TRUE(at(rank).barrier().ok());
    if (rank == 3) return;
    std::vector<float> data(kLarge);
    const auto report = at(rank).all_reduce(std::span(data), {.delivery = exact(1s)});
    ASSERT_FALSE(report.ok());
    texts[static_cast<std::size_t>(rank)] = report.status().c_str();
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("all_reduce #1: "));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("rank 3"));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)],
                ::testing::AnyOf(HasSubstr("(deadline 1000 ms)"), HasSubstr("at its own")));
  }
}

// One rank is late for an exact call. The calls behind it are lossy and must not wait for it.
TEST_F(Sites, ALossyCallEndsAtItsDeadlineBehindAnother) {
  meet({"a", "a", "b", "b"});
  std::atomic<int> waiting{kSiteRanks - 1};
  std::promise<void> over;
  on_all([&](int rank) {
    const bool late = rank == kSiteRanks - 1;
    if (late) over.get_future().wait();
    std::vector<float> exact(kLarge, 1.0f);
    Work before = at(rank).all_reduce_async(std::span(exact));
    for (int i = 0; i < 2; ++i) {
      std::vector<float> lossy(kLarge, 1.0f);
      const auto report =
          at(rank).all_reduce(std::span(lossy), {.op = ReduceOp::avg,
                                                 .delivery = best_effort(100ms),
                                                 .spread = Delivery::Kind::best_effort});
      EXPECT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report.ok() && report->sites == 2, true);
    }
    EXPECT_TRUE(late || !before.done());
    if (!late && --waiting == 0) over.set_value();
    EXPECT_TRUE(before.wait().ok());
    EXPECT_THAT(exact, Each(4.0f));
  });
}

TEST_F(Sites, ARankThatLeftIsNamedToAll) {
  meet({"a", "a", "b", "b"});
  group_[3].reset();
  std::array<std::string, kSiteRanks> texts;
  on_all([&](int rank) {
    if (rank == 3) return;
    std::vector<float> data(kLarge);
    const auto report = at(rank).all_reduce(std::span(data), {.delivery = exact(10s)});
    ASSERT_FALSE(report.ok());
    texts[static_cast<std::size_t>(rank)] = report.status().c_str();
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("all_reduce #0: "));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("rank 3"));
  }
}

TEST_F(Sites, ACommunicatorMayGoWhileItsCallsAreUnderWay) {
  meet({"a", "a", "b", "b"});
  std::array<std::vector<float>, kSiteRanks> data;
  on_all([&](int rank) {
    auto& own = data[static_cast<std::size_t>(rank)];
    own.assign(kLarge, 1.0f);
    Work work = at(rank).all_reduce_async(std::span(own));
    group_[static_cast<std::size_t>(rank)].reset();
    EXPECT_TRUE(work.done());
    EXPECT_TRUE(work.wait().ok()) << work.wait().status().c_str();
    EXPECT_THAT(own, Each(4.0f));
  });
}

// Calls in progress, and legs that had not begun, must end, with whatever result.
TEST_F(Sites, ACallbackMayEndTheCommunicator) {
  meet({"a", "a", "b", "b"});
  on_all([&](int rank) {
    std::vector<float> first(kLarge, 1.0f);
    std::vector<float> second(kLarge, 2.0f);
    std::atomic<bool> gone{false};
    Work one = at(rank).all_reduce_async(std::span(first));
    Work two = at(rank).all_reduce_async(std::span(second));
    one.on_done([&] {
      group_[static_cast<std::size_t>(rank)].reset();
      gone = true;
    });
    (void)one.wait();
    while (!gone) std::this_thread::yield();
    EXPECT_TRUE(two.done());
  });
}

// The others never call, so the communicator must stop waiting and cancel the call.
TEST_F(Sites, ACommunicatorGoesThoughItsCallCannotEnd) {
  meet({"a", "a", "b", "b"});
  std::vector<float> data(kLarge);
  Work work = at(1).all_reduce_async(std::span(data));
  group_[1].reset();
  ASSERT_TRUE(work.done());
  EXPECT_EQ(work.wait().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace leeway
