// A collective without elements must be made by all ranks, as a barrier must.
#include <gtest/gtest.h>

#include "support/reference_call.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::CallShape;
using testing::EngineGroup;
using testing::GroupOptions;
using testing::ReferenceCall;

constexpr std::array kCollectives = {OperationKind::all_reduce, OperationKind::reduce_scatter,
                                     OperationKind::all_gather, OperationKind::broadcast,
                                     OperationKind::reduce,     OperationKind::gather,
                                     OperationKind::scatter,    OperationKind::all_to_all};

bool has_root(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::reduce ||
         kind == OperationKind::gather || kind == OperationKind::scatter;
}

// Returns true if `rank` may finish before anyone finds out that `odd` has no elements, because it
// waits only for ranks that call as it does.
bool may_be_done(OperationKind kind, Rank rank, Rank root, Rank odd) {
  if (!has_root(kind) || rank == odd) return false;
  const bool from_root = kind == OperationKind::broadcast || kind == OperationKind::scatter;
  return from_root ? odd != root : rank != root;
}

struct Case {
  OperationKind kind;
  bool one_host;
  double loss;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const OperationKind kind : kCollectives) {
    for (const bool one_host : {false, true}) {
      for (const double loss : {0.0, 0.2}) all.push_back({kind, one_host, loss});
    }
  }
  return all;
}

class EmptyOnOneRank : public ::testing::TestWithParam<Case> {};

TEST_P(EmptyOnOneRank, IsAMismatchOnAllAndTheNextCallIsRight) {
  constexpr Rank kRoot = 1;
  const Case& c = GetParam();
  for (const std::size_t count : {1u, 20'000u}) {
    for (Rank odd = 0; odd < 3; ++odd) {
      for (const Duration late : {0ms, 50ms, -50ms}) {
        SCOPED_TRACE(std::to_string(count) + " elements, none on rank " + std::to_string(odd) +
                     ", late by ms " + std::to_string(late / 1ms));
        GroupOptions network{.size = 3, .one_host = c.one_host};
        network.faults.loss = c.loss;
        network.faults.seed = 7 + odd;
        EngineGroup group(network);
        ReferenceCall full({.kind = c.kind, .size = 3, .count = count, .root = kRoot});
        ReferenceCall empty({.kind = c.kind, .size = 3, .count = 0, .root = kRoot});
        std::vector<Request*> requests(3);
        const auto submit = [&](bool odd_one) {
          for (Rank rank = 0; rank < 3; ++rank) {
            if ((rank == odd) != odd_one) continue;
            OperationSpec spec = (odd_one ? empty : full).specs(rank).front();
            spec.options.delivery = exact(30s);
            requests[rank] = &group.submit(rank, spec);
          }
        };
        submit(late < 0ms);
        group.run_until([] { return false; }, std::chrono::abs(late));
        submit(late >= 0ms);
        ASSERT_TRUE(group.run(requests, 10s)) << "found out long before the deadline";
        for (Rank rank = 0; rank < 3; ++rank) {
          const Status& status = requests[rank]->status;
          if (status.ok() && may_be_done(c.kind, rank, kRoot, odd)) continue;
          EXPECT_EQ(status.code(), StatusCode::kMismatch)
              << "rank " << rank << ": " << status.text();
          if (c.loss > 0.0) continue;  // a rank may hear of it from a third rank
          EXPECT_NE(status.text().find("float[0]"), std::string_view::npos) << status.text();
        }
        ReferenceCall next({.kind = OperationKind::all_reduce, .size = 3, .count = 100});
        ASSERT_TRUE(next.run(group));
        EXPECT_TRUE(next.check());
        EXPECT_TRUE(group.settle());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmptyOnOneRank, ::testing::ValuesIn(cases()), [](const auto& row) {
  std::string name = std::string(to_string(row.param.kind)) +
                     (row.param.one_host ? "OnOneHost" : "") + (row.param.loss > 0 ? "Lossy" : "");
  std::erase(name, '_');
  return name;
});

OperationSpec nothing(OperationKind kind, const Delivery& delivery) {
  OperationSpec spec{.kind = kind, .peer = 0};
  spec.options.delivery = delivery;
  return spec;
}

// A tensor without elements may have memory or none; only its type must agree.
TEST(EmptyCalls, OfOneTypeAreRightWhateverTheirMemoryIs) {
  for (const OperationKind kind : kCollectives) {
    EngineGroup group({.size = 3});
    float memory = 1.0f;
    const auto requests = group.submit_all([&](Rank rank) {
      OperationSpec spec = nothing(kind, exact(1s));
      const bool reads = kind != OperationKind::scatter;
      if (reads || rank == 0) spec.input.dtype = DataType::i32;
      if (rank == 0 || !has_root(kind) || kind == OperationKind::broadcast || !reads)
        spec.output.dtype = DataType::i32;
      if (rank == 2) spec.input.data = &memory;
      return spec;
    });
    ASSERT_TRUE(group.run(requests, 1s)) << to_string(kind);
    for (const Request* request : requests)
      EXPECT_TRUE(request->status.ok()) << request->status.text();
  }
}

TEST(EmptyCalls, TakeThePacketsOfABarrier) {
  for (const bool one_host : {false, true}) {
    EngineGroup group({.size = 4, .one_host = one_host});
    const auto packets = [&](OperationKind kind) {
      const auto requests = group.submit_all([&](Rank) { return nothing(kind, exact(1s)); });
      EXPECT_TRUE(group.run(requests, 1s));
      std::uint64_t sent = 0;
      for (const Request* request : requests) {
        EXPECT_TRUE(request->status.ok()) << request->status.text();
        for (const PeerReport& peer : request->report.peers) sent += peer.sent;
      }
      EXPECT_TRUE(group.settle());
      return sent;
    };
    const std::uint64_t barrier = packets(OperationKind::barrier);
    EXPECT_EQ(barrier, one_host ? 6u : 12u);
    for (const OperationKind kind : kCollectives)
      EXPECT_EQ(packets(kind), barrier) << to_string(kind);
  }
}

// If a rank does not come, delivery classes mean the same as for calls with elements.
TEST(EmptyCalls, EndByTheirClassWhereARankDoesNotCome) {
  for (const bool dies : {false, true}) {
    for (const Delivery& delivery : {exact(300ms), bounded(0.0, 300ms), best_effort(300ms)}) {
      SCOPED_TRACE(std::string(to_string(delivery.kind)) + (dies ? ", a rank is dead" : ""));
      EngineGroup group({.size = 3, .peer_timeout = dies ? Duration(100ms) : Duration(0)});
      group.freeze(2);
      std::vector<Request*> requests;
      for (Rank rank = 0; rank < 2; ++rank)
        requests.push_back(&group.submit(rank, nothing(OperationKind::all_reduce, delivery)));
      ASSERT_TRUE(group.run(requests, 1s));
      for (const Request* request : requests) {
        if (delivery.kind != Delivery::Kind::exact) {
          EXPECT_TRUE(request->status.ok()) << request->status.text();
          EXPECT_TRUE(request->report.complete) << "nothing is missing of nothing";
          EXPECT_EQ(request->report.elements_missing, 0u);
          EXPECT_EQ(request->report.deadline_cut, !dies);
          continue;
        }
        EXPECT_EQ(request->status.code(),
                  dies ? StatusCode::kPeerLost : StatusCode::kDeadlineExceeded);
        EXPECT_NE(request->status.text().find("rank 2"), std::string_view::npos)
            << request->status.text();
      }
    }
  }
}

TEST(EmptyCalls, OfLossyClassesLoseNothingButPackets) {
  for (const Delivery& delivery : {bounded(0.5, 1s), best_effort(1s)}) {
    for (const Estimator estimator : {Estimator::ratio, Estimator::horvitz_thompson}) {
      GroupOptions network{.size = 4};
      network.faults.loss = 0.3;
      EngineGroup group(network);
      for (int turn = 0; turn < 50; ++turn) {
        const auto requests = group.submit_all([&](Rank) {
          OperationSpec spec = nothing(OperationKind::all_reduce, delivery);
          spec.options.estimator = estimator;
          spec.options.confirm_use = turn % 2 == 0;
          return spec;
        });
        ASSERT_TRUE(group.run(requests, 2s));
        for (const Request* request : requests) {
          ASSERT_TRUE(request->status.ok()) << request->status.text();
          EXPECT_TRUE(request->report.complete);
          EXPECT_EQ(request->report.variance_estimate, 0.0);
        }
      }
      EXPECT_TRUE(group.settle());
    }
  }
}

TEST(EmptyCalls, EndWithTheCommunicator) {
  EngineGroup group({.size = 2});
  Request& request = group.submit(0, nothing(OperationKind::broadcast, exact(no_deadline)));
  group.run_until([] { return false; }, 10ms);
  ASSERT_FALSE(request.done) << "rank 1 has not come";
  group.engine(0).cancel(group.now(), Status::error(StatusCode::kCancelled, "aborted"));
  EXPECT_EQ(request.status.code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace leeway::collective
