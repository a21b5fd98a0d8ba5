// No call outlives its deadline by more than a tick, whatever a peer does. The error of a call that
// failed names the operation with its number, the rank that reports it, and the peer at fault.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "support/datagram_view.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kDeadlineSize = 4;
constexpr Rank kStopped = 2;
constexpr Duration kTick{limits::kTickNs};

class StoppedRank : public ::testing::Test {
 protected:
  OperationSpec all_reduce(Rank rank, Delivery delivery) {
    data_[rank].assign(100000, static_cast<float>(rank + 1));
    OperationSpec spec{.kind = OperationKind::all_reduce};
    spec.input = std::span(data_[rank]);
    spec.output = std::span(data_[rank]);
    spec.options.delivery = delivery;
    spec.options.spread = spread_;
    return spec;
  }

  // All ranks submit. After `stopped_after` one rank stops. Returns the requests of the others.
  std::vector<Request*> run(Delivery delivery, Duration stopped_after) {
    std::vector<Request*> requests;
    submitted_ = group_.now();
    for (Rank rank = 0; rank < kDeadlineSize; ++rank) {
      Request& request = group_.submit(rank, all_reduce(rank, delivery));
      if (rank != kStopped) requests.push_back(&request);
    }
    group_.run_until([] { return false; }, stopped_after);
    group_.freeze(kStopped);
    EXPECT_TRUE(group_.run(requests, delivery.deadline + kTick - stopped_after))
        << "a tick after the deadline";
    return requests;
  }

  EngineGroup group_{GroupOptions{.size = kDeadlineSize}};
  std::array<std::vector<float>, kDeadlineSize> data_;
  Instant submitted_{0};
  Delivery::Kind spread_ = Delivery::Kind::exact;
};

TEST_F(StoppedRank, LossyReductionReturnsAtTheDeadlineWithWhatCame) {
  for (const Request* request : run(best_effort(20ms), 0ms)) {
    EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded) << "spread exact promises all";
    EXPECT_NE(
        request->status.text().find("25024 of 100000 elements of the result did not come, most "
                                    "of them from rank 2 (deadline 20 ms)"),
        std::string_view::npos)
        << request->status.text();
    EXPECT_TRUE(request->report.deadline_cut);
    EXPECT_LE(request->report.times.total, 20ms + kTick);
    EXPECT_FALSE(request->report.complete);
    // Nobody reduced the stopped rank's shard, so all of it is missing.
    EXPECT_EQ(request->report.elements_missing, 25024u);
  }
  // Ranks 0 to 3 contribute 1 to 4. Shard 0 has the contributions of all but the stopped rank 2,
  // rescaled: 4 (1 + 2 + 4) / 3. Nobody reduced rank 2's shard, so it is 0.
  EXPECT_FLOAT_EQ(data_[1][0], 4.0f * 7.0f / 3.0f);
  EXPECT_EQ(data_[1][60000], 0.0f);
}

// A bounded spread allows zeros in the result, so the stopped rank's shard is no error.
TEST_F(StoppedRank, ABoundedSpreadReturnsWhatCameByTheDeadline) {
  spread_ = Delivery::Kind::bounded;
  for (const Request* request : run(best_effort(20ms), 0ms)) {
    ASSERT_TRUE(request->status.ok()) << request->status.text();
    EXPECT_TRUE(request->report.deadline_cut);
    EXPECT_EQ(request->report.elements_missing, 25024u);
  }
  EXPECT_FLOAT_EQ(data_[1][0], 4.0f * 7.0f / 3.0f);
  EXPECT_EQ(data_[1][60000], 0.0f);
}

TEST_F(StoppedRank, LossyReductionReturnsInTimeWhenTheRankStopsMidway) {
  for (const Duration after : {150us, 400us, 650us}) {
    EngineGroup group(GroupOptions{.size = kDeadlineSize});
    std::swap(group, group_);
    for (const Request* request : run(bounded(0.01, 20ms), after)) {
      EXPECT_EQ(request->status.ok(), request->report.complete) << request->status.text();
      EXPECT_LE(request->report.times.total, 20ms + kTick);
    }
  }
}

TEST_F(StoppedRank, ExactReductionNamesRankOperationPeerAndDeadline) {
  const auto requests = run(exact(20ms), 150us);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Status& status = requests[i]->status;
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    const std::string text(status.text());
    const int self = i < 2 ? static_cast<int>(i) : 3;
    EXPECT_NE(text.find("rank " + std::to_string(self) + ": all_reduce #0"), std::string::npos)
        << text;
    EXPECT_NE(text.find("20 ms"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2", 8), std::string::npos) << text;
  }
}

TEST_F(StoppedRank, EveryExactOperationReturnsInTime) {
  for (int k = 0; k <= static_cast<int>(OperationKind::barrier); ++k) {
    const auto kind = static_cast<OperationKind>(k);
    EngineGroup group(GroupOptions{.size = kDeadlineSize});
    std::array<std::vector<float>, kDeadlineSize> in, out;
    group.freeze(1);
    std::vector<Request*> waiting;
    for (Rank rank = 0; rank < kDeadlineSize; ++rank) {
      OperationSpec spec{.kind = kind, .peer = 0};
      spec.options.delivery = exact(20ms);
      in[rank].assign(40000, 1.0f);
      out[rank].assign(40000, 1.0f);
      spec.input = std::span(in[rank]);
      spec.output = std::span(out[rank]);
      switch (kind) {
        case OperationKind::reduce_scatter:
          spec.output.count = 10000;
          break;
        case OperationKind::all_gather:
        case OperationKind::gather:
          spec.input.count = 10000;
          break;
        case OperationKind::scatter:
          spec.output.count = 10000;
          break;
        case OperationKind::broadcast:
          spec.input = spec.output;
          break;
        case OperationKind::barrier:
          spec.input = {nullptr, 0, DataType::f32}, spec.output = {nullptr, 0, DataType::f32};
          break;
        case OperationKind::send:
        case OperationKind::recv:
          spec.peer = 1;
          break;
        default:
          break;
      }
      if (rank == 1) spec.peer = 0;
      Request& request = group.submit(rank, spec);
      if (rank != 1) waiting.push_back(&request);
    }
    EXPECT_TRUE(group.run(waiting, 20ms + kTick)) << to_string(kind);
    int failed = 0;
    for (const Request* request : waiting) {
      if (request->status.ok()) continue;
      ++failed;
      EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded);
      EXPECT_NE(request->status.text().find("rank 1"), std::string_view::npos)
          << request->status.text();
    }
    EXPECT_GT(failed, 0) << to_string(kind);
  }
}

TEST_F(StoppedRank, TheNextOperationsWorkOnceItIsBack) {
  run(best_effort(20ms), 300us);
  group_.thaw(kStopped);
  ASSERT_TRUE(group_.settle());
  const auto requests = group_.submit_all([&](Rank rank) { return all_reduce(rank, exact(1s)); });
  ASSERT_TRUE(group_.run(requests));
  for (Rank rank = 0; rank < kDeadlineSize; ++rank) {
    ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
    EXPECT_EQ(data_[rank], std::vector<float>(100000, 10.0f));
  }
}

TEST_F(StoppedRank, AnOperationThatHadToQueueKeepsTheDeadlineOfItsSubmission) {
  group_.freeze(kStopped);
  std::vector<Request*> requests;
  for (int i = 0; i < limits::kOpenCollectivesMax + 4; ++i) {
    requests.push_back(&group_.submit(0, all_reduce(0, exact(20ms))));
  }
  EXPECT_TRUE(group_.run(requests, 20ms + kTick));
  for (const Request* request : requests)
    EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded);
}

// The deadline of each rank begins with its own call. Rank 0 gives up first. Rank 1's error must
// name the silent rank 2, and must not blame rank 0 for leaving.
TEST(DeadlineOfDifferentRanks, ASurvivorThatGaveUpFirstIsNotBlamed) {
  testing::EngineGroup group(testing::GroupOptions{.size = 3});
  std::vector<std::vector<float>> data(3, std::vector<float>(50'000, 1.0f));
  group.freeze(2);
  std::vector<collective::Request*> requests;
  for (const Rank rank : {0, 1}) {
    OperationSpec spec{.kind = OperationKind::all_reduce,
                       .input = std::span(data[rank]),
                       .output = std::span(data[rank])};
    spec.options.delivery = exact(std::chrono::milliseconds(rank == 0 ? 50 : 2000));
    requests.push_back(&group.submit(rank, spec));
  }
  ASSERT_TRUE(group.run_until([&] { return requests[0]->done; }));
  // This call tells rank 1 that rank 0 has left the first call.
  std::vector<float> next(50'000, 1.0f);
  group.submit(
      0, {.kind = OperationKind::all_reduce, .input = std::span(next), .output = std::span(next)});
  ASSERT_TRUE(group.run(requests));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded) << request->status.text();
    EXPECT_NE(request->status.text().find("rank 2"), std::string_view::npos)
        << request->status.text();
  }
}

// If a peer's deadline cut the result, no rank is dead. The report must say that a deadline was the
// reason.
TEST(DeadlineOfDifferentRanks, WhatAPeersDeadlineCutIsSaidToBe) {
  for (const Delivery::Kind spread : {Delivery::Kind::exact, Delivery::Kind::bounded}) {
    EngineGroup group(GroupOptions{.size = 2});
    group.filter = [](Rank from, Rank, ByteSpan datagram) {
      return from != 0 || !testing::data_header_of(datagram);
    };
    std::vector<std::vector<float>> data(2, std::vector<float>(10'000, 1.0f));
    std::vector<Request*> requests;
    for (const Rank rank : {0, 1}) {
      OperationSpec spec{.kind = OperationKind::all_reduce,
                         .input = std::span(data[rank]),
                         .output = std::span(data[rank])};
      spec.options.delivery = best_effort(rank == 0 ? 50ms : 10s);
      spec.options.spread = spread;
      requests.push_back(&group.submit(rank, spec));
    }
    ASSERT_TRUE(group.run(requests, 1s)) << "waits for its own deadline";
    const Request& other = *requests[1];
    EXPECT_TRUE(other.report.deadline_cut);
    EXPECT_GT(other.report.elements_missing, 0u);
    if (spread == Delivery::Kind::bounded) {
      EXPECT_TRUE(other.status.ok()) << other.status.text();
      continue;
    }
    EXPECT_EQ(other.status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(other.status.text().find("rank 0 gave it up at its own deadline"),
              std::string_view::npos)
        << other.status.text();
  }
}

// The engine opens no more calls than limits::kOpenCollectivesMax. Further calls wait for room.
TEST(CallsThatWaitForRoom, EndAtTheirDeadlinesAndKeepTheirPlaces) {
  EngineGroup group(GroupOptions{.size = 2});
  constexpr std::size_t kFirst = limits::kOpenCollectivesMax;
  constexpr std::size_t kCalls = kFirst + 3;
  std::vector<float> values[2][kCalls];
  std::vector<Request*> requests[2];
  const auto submit = [&](Rank rank, std::size_t call) {
    values[rank][call].assign(1000, 1.0f);
    OperationSpec spec{.kind = OperationKind::all_reduce};
    spec.input = std::span(values[rank][call]);
    spec.output = std::span(values[rank][call]);
    spec.options.delivery = exact(no_deadline);
    if (call == kFirst) spec.options.delivery = best_effort(5ms);
    if (call == kFirst + 1) spec.options.delivery = exact(6ms);
    requests[rank].push_back(&group.submit(rank, spec));
  };
  for (std::size_t call = 0; call < kCalls; ++call) submit(0, call);
  ASSERT_TRUE(group.run({requests[0][kFirst]}, 5ms + kTick));
  ASSERT_TRUE(group.run({requests[0][kFirst + 1]}, 1ms + kTick));
  EXPECT_EQ(requests[0][kFirst]->status.code(), StatusCode::kDeadlineExceeded);
  const std::string text(requests[0][kFirst + 1]->status.text());
  EXPECT_EQ(text, "rank 0: all_reduce: Timed out (deadline 6 ms): " + std::to_string(kFirst) +
                      " calls before it are not over; the oldest is #0, for which rank 1 is late");
  EXPECT_FALSE(requests[0][0]->done);
  for (std::size_t call = 0; call < kCalls; ++call) submit(1, call);
  ASSERT_TRUE(group.run(requests[0]) && group.run(requests[1]));
  for (std::size_t call = 0; call < kCalls; ++call) {
    if (call == kFirst || call == kFirst + 1) continue;
    EXPECT_TRUE(requests[1][call]->status.ok()) << requests[1][call]->status.c_str();
    EXPECT_EQ(values[0][call].back(), 2.0f);
    EXPECT_EQ(values[1][call].back(), 2.0f);
  }
  EXPECT_EQ(requests[1][kFirst + 1]->status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(group.settle());
}

}  // namespace
}  // namespace leeway::collective
