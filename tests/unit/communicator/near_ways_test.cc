// Tests which route calls of ranks that share memory take, and calls for which ranks take different
// routes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "collective/host_payload.h"
#include "unit/communicator/near_group.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class NearWays : public NearCallsOfAGroup {};

TEST_F(NearWays, LossyCallsAndMessagesGoOnAsDatagrams) {
  Group group = near_group(2);
  on_each(2, [&](std::size_t rank) {
    std::vector<float> values(1000, 1.0f);
    ASSERT_TRUE(group[rank]->all_reduce(std::span(values), {.delivery = best_effort(10s)}).ok());
    const auto peer = static_cast<Rank>(1 - rank);
    ASSERT_TRUE(rank == 0 ? group[0]->send(std::span<const float>(values), peer).ok()
                          : group[1]->recv(std::span(values), peer).ok());
  });
  EXPECT_EQ(counter(*group[0], "near_calls"), 0u);
  EXPECT_GT(counter(*group[0], "data_sent"), 0u);
}

TEST_F(NearWays, ARanksOwnWeightTakesAllToTheDatagrams) {
  Group group = near_group(3);
  for (int i = 0; i < 3; ++i) {
    on_each(3, [&](std::size_t rank) {
      std::vector<float> values(1000, rank == 2 ? 9.0f : 1.0f);
      CollectiveOptions options{.op = ReduceOp::avg};
      if (rank == 2) options.weight = 3.0;
      const auto report = group[rank]->all_reduce(std::span(values), options);
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_FLOAT_EQ(values[500], 11.0f / 5.0f);
    });
    expect_sums(group, 100);
  }
  EXPECT_EQ(counter(*group[0], "near_apart"), 3u);
}

// A rank that refuses a call sends it as datagrams at once, while peers find that call in memory
// later. Later calls keep their order, and a peer that lags must follow.
TEST_F(NearWays, RefusedCallsAmongOthersInFlightHoldUpNone) {
  constexpr std::size_t kRanks = 4;
  Group group = near_group(kRanks);
  std::mt19937 random(2);
  for (int batch = 0; batch < 150; ++batch) {
    struct Drawn {
      std::size_t elements;
      std::size_t refuses;  // kRanks if no rank does
      bool waits;
    };
    std::vector<Drawn> calls(2 + random() % 5);
    for (Drawn& call : calls) {
      call.elements = std::array<std::size_t, 3>{1, 18'480, 100'000}[random() % 3];
      call.refuses = random() % 3 == 0 ? random() % kRanks : kRanks;
      call.waits = random() % 4 == 0;
    }
    on_each(kRanks, [&](std::size_t rank) {
      std::vector<std::vector<float>> values;
      std::vector<Work> works;
      for (const Drawn& call : calls) {
        CollectiveOptions options{.delivery = exact(20s)};
        if (call.refuses == rank) options.tag = 5;
        values.emplace_back(call.elements, 1.0f);
        works.push_back(group[rank]->all_reduce_async(std::span(values.back()), options));
        if (call.waits && rank % 2 == 0) (void)works.back().wait();
      }
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto report = works[i].wait();
        const StatusCode code = report.ok() ? StatusCode::kOk : report.status().code();
        EXPECT_EQ(code, calls[i].refuses == kRanks ? StatusCode::kOk
                        : calls[i].refuses == rank ? StatusCode::kInvalidArgument
                                                   : StatusCode::kMismatch)
            << "batch " << batch << ", call " << i << ": "
            << (report.ok() ? "ok" : report.status().c_str());
        if (report.ok()) {
          EXPECT_EQ(values[i].back(), 4.0f);
        }
      }
    });
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(NearWays, WhatHasNoMeaningInACallMayDiffer) {
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    std::vector<float> values(1000, 1.0f);
    CollectiveOptions odd;
    if (rank == 1) odd.estimator = Estimator::stratified;
    EXPECT_TRUE(group[rank]->all_reduce(std::span(values), odd).ok());
    if (rank == 1) {
      odd.op = ReduceOp::max;
      odd.spread = Delivery::Kind::bounded;
      odd.spread_codec = Codec::bf16;
    }
    const auto report = group[rank]->broadcast(std::span(values), 0, odd);
    EXPECT_TRUE(report.ok()) << report.status().c_str();
  });
  EXPECT_EQ(counter(*group[1], "near_calls"), 2u);
  expect_sums(group);
}

TEST_F(NearWays, ThatDifferAreAMismatchOnAllRanks) {
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    std::vector<float> values(10);
    const Status status = rank == 1 ? group[rank]->barrier().status()
                                    : group[rank]->all_reduce(std::span(values)).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.c_str();
  });
  expect_sums(group);
}

// Rank 1's call is by datagrams because of its codec, and the calls of the other ranks are in
// memory. Yet all ranks must find the mismatch.
TEST_F(NearWays, ThatGoOtherWaysAreAMismatchOnAllRanks) {
  Group group = near_group(3);
  expect_sums(group);
  int calls = 1;
  for (const bool waits : {true, false}) {
    on_each(3, [&](std::size_t rank) {
      std::vector<float> values(1000, 1.0f);
      const CollectiveOptions options{.codec = rank == 1 ? Codec::fp8_e4m3 : Codec::native};
      const Status status =
          waits ? group[rank]->all_reduce(std::span(values), options).status()
                : group[rank]->all_reduce_async(std::span(values), options).wait().status();
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.c_str();
      EXPECT_THAT(status.c_str(), HasSubstr("all_reduce #" + std::to_string(calls) + ": "));
    });
    expect_sums(group);
    calls += 2;
  }
  EXPECT_EQ(counter(*group[0], "near_elsewhere"), 2u);
  EXPECT_EQ(counter(*group[1], "near_elsewhere"), 0u);
}

TEST_F(NearWays, MixWithCallsByDatagramsInAnyOrder) {
  Group group = near_group(3);
  on_each(3, [&](std::size_t rank) {
    std::vector<std::vector<float>> values;
    std::vector<Work> works;
    for (int i = 0; i < 60; ++i) {
      values.emplace_back(i % 7 == 0 ? 100'000 : 10, 2.0f);
      const CollectiveOptions options{.codec = i % 3 == 1 ? Codec::fp8_e4m3 : Codec::native};
      works.push_back(group[rank]->all_reduce_async(std::span(values.back()), options));
    }
    for (Work& work : works) ASSERT_TRUE(work.wait().ok());
    for (const auto& one : values) ASSERT_EQ(one.back(), 6.0f);
  });
  EXPECT_EQ(counter(*group[0], "near_elsewhere"), 0u);
  EXPECT_EQ(counter(*group[0], "near_calls"), 40u);
}

// Rank 2 is late for an exact call in memory. The calls behind that one are by datagrams.
struct LateRank {
  explicit LateRank(Group& all) : group(all) {
    for (auto& one : exact) one.assign(1000, 1.0f);
    for (auto& one : lossy) one.assign(1000, 1.0f);
  }
  Work start_exact(std::size_t rank) {
    return group[rank]->all_reduce_async(std::span(exact[rank]), {.delivery = leeway::exact(10s)});
  }
  // Makes a lossy call whose deadline ends long before the exact call's.
  Result<CollectiveReport> run_lossy(std::size_t rank) {
    return group[rank]->all_reduce(std::span(lossy[rank]), {.op = ReduceOp::avg,
                                                            .delivery = best_effort(50ms),
                                                            .spread = Delivery::Kind::best_effort});
  }
  void tell_over() {
    if (--waiting == 0) over.set_value();
  }

  Group& group;
  std::array<std::vector<float>, 3> exact, lossy;
  std::atomic<int> waiting{2};
  std::promise<void> over;  // ranks 0 and 1 are through their lossy calls
};

TEST_F(NearWays, ALossyCallDoesNotWaitForOneInMemory) {
  Group group = near_group(3);
  LateRank late(group);
  on_each(3, [&](std::size_t rank) {
    if (rank == 2) late.over.get_future().wait();
    Work exact = late.start_exact(rank);
    const auto report = late.run_lossy(rank);
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    if (rank != 2) {
      EXPECT_TRUE(report->deadline_cut);
      EXPECT_GE(report->times.total, 50ms);
      EXPECT_FALSE(exact.done());
      late.tell_over();
    }
    EXPECT_TRUE(exact.wait().ok());
    EXPECT_EQ(late.exact[rank].back(), 3.0f);
  });
  expect_sums(group);
}

// The first call is in memory, but goes on by datagrams because the ranks have different weights.
// Rank 0's call behind it must end at its deadline although the first call is still open.
TEST_F(NearWays, ADeadlinePassesAlsoBehindACallThatStandsApart) {
  Group group = near_group(3);
  std::promise<void> over;
  on_each(3, [&](std::size_t rank) {
    std::vector<float> values(10, 1.0f);
    if (rank == 2) over.get_future().wait();
    Work apart = group[rank]->all_reduce_async(std::span(values),
                                               {.op = ReduceOp::avg, .weight = 1.0 + rank});
    if (rank == 0) {
      std::vector<float> behind(10);
      const Status status =
          group[0]->all_reduce(std::span(behind), {.delivery = exact(50ms)}).status();
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.c_str();
      EXPECT_FALSE(apart.done());
      over.set_value();
    }
    EXPECT_TRUE(apart.wait().ok());
    EXPECT_FLOAT_EQ(values.back(), 3.0f / 6.0f);
    if (rank != 0) {
      EXPECT_FALSE(group[rank]->all_reduce(std::span(values)).ok());
    }
  });
  expect_sums(group);
}

// Rank 1's second call is by datagrams because of its payload source. Its data reach rank 0 while
// rank 0 still waits for rank 2 in the first call.
TEST_F(NearWays, ACallThatFollowsOneByDatagramsMayComeAfterLaterOnes) {
  Group group = near_group(3);
  LateRank late(group);
  std::array<std::vector<float>, 3> values;
  for (auto& one : values) one.assign(50'000, 2.0f);
  collective::HostPayload payload(collective::HostTensors{
      .input = std::span(std::as_const(values[1])), .output = std::span(values[1])});
  on_each(3, [&](std::size_t rank) {
    if (rank == 2) late.over.get_future().wait();
    Work exact = late.start_exact(rank);
    CollectiveOptions options;
    if (rank == 1) {
      options.source = &payload;
      options.sink = &payload;
    }
    Work second = group[rank]->all_reduce_async(
        TensorView(rank == 1 ? nullptr : values[rank].data(), values[rank].size(), DataType::f32),
        options);
    if (rank == 1) {
      for (const PayloadChunk& chunk : payload.chunks()) payload.encode(chunk);
      group[1]->notify_payload();
    }
    EXPECT_TRUE(late.run_lossy(rank).ok());
    if (rank != 2) late.tell_over();
    while (rank == 1 && !second.done()) {
      if (payload.use()) group[1]->notify_payload();
      std::this_thread::yield();
    }
    const auto report = second.wait();
    EXPECT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_TRUE(exact.wait().ok());
    EXPECT_EQ(values[rank].back(), 6.0f);
  });
  EXPECT_EQ(counter(*group[0], "near_elsewhere"), 1u);
  expect_sums(group);
}

TEST_F(NearWays, RanksThatDifferHearItAlsoBehindACallInMemory) {
  Group group = near_group(3);
  LateRank late(group);
  on_each(3, [&](std::size_t rank) {
    if (rank == 2) late.over.get_future().wait();
    Work exact = late.start_exact(rank);
    std::vector<float> values(1000, 1.0f);
    Work second = group[rank]->all_reduce_async(
        std::span(values), {.codec = rank == 1 ? Codec::fp8_e4m3 : Codec::native});
    EXPECT_TRUE(late.run_lossy(rank).ok());
    if (rank != 2) late.tell_over();
    const Status status = second.wait().status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.c_str();
    EXPECT_THAT(status.c_str(), HasSubstr("all_reduce #1: "));
    EXPECT_TRUE(exact.wait().ok());
  });
  expect_sums(group);
}

// A call in which rank 1 encodes elsewhere. So rank 1's call is by datagrams, and rank 0's must
// follow.
struct HalfElsewhere {
  explicit HalfElsewhere(Group& both)
      : group(both),
        payload(collective::HostTensors{.input = std::span(std::as_const(values)),
                                        .output = std::span(values)}) {
    options.source = &payload;
    options.sink = &payload;
    here = group[0]->all_reduce_async(std::span(plain));
    there = group[1]->all_reduce_async(TensorView(nullptr, values.size(), DataType::f32), options);
    while (counter(*group[0], "near_elsewhere") == 0) std::this_thread::yield();
  }

  Group& group;
  std::vector<float> plain = std::vector<float>(5000, 1.0f);
  std::vector<float> values = std::vector<float>(5000, 2.0f);
  collective::HostPayload payload;
  CollectiveOptions options;
  Work here, there;
};

TEST_F(NearWays, MeetACallWhoseSourceIsElsewhere) {
  Group group = near_group(2);
  HalfElsewhere call(group);
  for (const PayloadChunk& chunk : call.payload.chunks()) call.payload.encode(chunk);
  group[1]->notify_payload();
  while (!call.there.done()) {
    if (call.payload.use()) group[1]->notify_payload();
    std::this_thread::yield();
  }
  EXPECT_TRUE(call.there.wait().ok());
  EXPECT_TRUE(call.here.wait().ok());
  EXPECT_EQ(call.plain.back(), 3.0f);
  EXPECT_EQ(call.values.back(), 3.0f);
  expect_sums(group);
}

TEST_F(NearWays, AbortEndsACallThatWentElsewhere) {
  Group group = near_group(2);
  HalfElsewhere call(group);
  group[0]->abort();
  EXPECT_EQ(call.here.wait().status().code(), StatusCode::kCancelled);
  group[1]->abort();
  // On a busy machine, rank 1 may hear that rank 0 has left before it is aborted itself.
  const StatusCode code = call.there.wait().status().code();
  EXPECT_TRUE(code == StatusCode::kCancelled || code == StatusCode::kPeerLost);
}

}  // namespace
}  // namespace leeway::internal
