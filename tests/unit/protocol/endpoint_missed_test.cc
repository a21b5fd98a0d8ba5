// A rank must learn that an owner used nothing of its contribution, and must never be told so of a
// contribution that was used.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "support/datagram_view.h"
#include "support/engine_group.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using collective::Request;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kRanks = 4;
constexpr std::size_t kShard = 1536;  // elements; 16 packets of a 512 B datagram

bool is_contribution(ByteSpan datagram) {
  if (testing::type_of(datagram) != wire::PacketType::data) return false;
  const auto header = testing::data_header_of(datagram);
  return header && header->kind == FlowKind::reduce;
}

class EndpointMissed : public ::testing::Test {
 protected:
  Request& submit(Rank rank, OperationKind kind, Delivery delivery, std::size_t shard = kShard) {
    inputs_[rank].assign(kRanks * shard, static_cast<float>(rank + 1));
    outputs_[rank].assign(kind == OperationKind::reduce_scatter ? shard : kRanks * shard, 0.0f);
    OperationSpec spec{
        .kind = kind, .input = std::span(inputs_[rank]), .output = std::span(outputs_[rank])};
    spec.options = {.op = ReduceOp::avg, .delivery = delivery, .confirm_use = true};
    return group_.submit(rank, spec);
  }
  std::vector<Request*> submit_all(OperationKind kind, Delivery delivery,
                                   std::size_t shard = kShard) {
    std::vector<Request*> requests;
    for (Rank rank = 0; rank < kRanks; ++rank)
      requests.push_back(&submit(rank, kind, delivery, shard));
    return requests;
  }
  void pass(Duration time) {
    group_.run_until([] { return false; }, time);
  }
  static bool missed(const Request& request, Rank owner) {
    for (const PeerReport& peer : request.report.peers) {
      if (peer.rank == owner) return peer.missed;
    }
    return false;
  }

  EngineGroup group_{GroupOptions{.size = kRanks, .datagram_bytes = 512}};
  std::array<std::vector<float>, kRanks> inputs_;
  std::array<std::vector<float>, kRanks> outputs_;
};

TEST_F(EndpointMissed, AnOwnerThatGotNothingSaysSoAndTheOthersDoNot) {
  group_.filter = [](Rank from, Rank to, ByteSpan datagram) {
    return from != 3 || to != 1 || !is_contribution(datagram);
  };
  const std::pair<OperationKind, Delivery> calls[] = {
      {OperationKind::all_reduce, best_effort(1s)},
      {OperationKind::reduce_scatter, best_effort(1s)},
      {OperationKind::replica_reduce, best_effort(1s)},
      {OperationKind::all_reduce, bounded(0.1, 1s)}};
  for (const auto& [kind, delivery] : calls) {
    const auto requests = submit_all(kind, delivery);
    ASSERT_TRUE(group_.run(requests, 2s));
    for (Rank rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(requests[rank]->status.ok());
      for (Rank owner = 0; owner < kRanks; ++owner) {
        EXPECT_EQ(missed(*requests[rank], owner), rank == 3 && owner == 1)
            << to_string(kind) << rank << owner;
      }
    }
  }
}

TEST_F(EndpointMissed, AnOwnerThatGotOnePacketUsedIt) {
  group_.filter = [](Rank from, Rank, ByteSpan datagram) {
    return from != 3 || !is_contribution(datagram) ||
           testing::data_header_of(datagram)->index.value == 5;
  };
  const auto requests = submit_all(OperationKind::reduce_scatter, best_effort(1s));
  ASSERT_TRUE(group_.run(requests, 2s));
  for (Rank owner = 0; owner < 3; ++owner) EXPECT_FALSE(missed(*requests[3], owner));
}

// The owners have settled without rank 3, but still wait for each other's results.
TEST_F(EndpointMissed, ALateRankIsToldWhileTheRoundIsStillOpen) {
  for (Rank rank = 0; rank < 3; ++rank) submit(rank, OperationKind::all_reduce, best_effort(100ms));
  pass(60ms);
  const Request& late = submit(3, OperationKind::all_reduce, best_effort(100ms));
  ASSERT_TRUE(group_.run_until([&] { return late.done; }, 20ms));
  for (Rank owner = 0; owner < 3; ++owner) {
    EXPECT_TRUE(missed(late, owner)) << owner;
    EXPECT_EQ(outputs_[3][owner * kShard], 2.0f) << "the mean of the three that were in time";
  }
}

TEST_F(EndpointMissed, ALateRankIsToldWhenTheRoundIsOver) {
  for (Rank rank = 0; rank < 3; ++rank)
    submit(rank, OperationKind::replica_reduce, best_effort(100ms));
  pass(150ms);
  const Request& late = submit(3, OperationKind::replica_reduce, best_effort(1s));
  ASSERT_TRUE(group_.run_until([&] { return late.done; }, 100ms));
  ASSERT_TRUE(late.status.ok());
  for (Rank owner = 0; owner < 3; ++owner) EXPECT_TRUE(missed(late, owner)) << owner;
}

TEST_F(EndpointMissed, NobodyWaitsForTheWordOfARankThatLeft) {
  group_.freeze(2);
  std::vector<Request*> requests;
  for (const Rank rank : {0, 1, 3}) {
    requests.push_back(
        &submit(static_cast<Rank>(rank), OperationKind::replica_reduce, best_effort(200ms)));
  }
  ASSERT_TRUE(group_.run(requests, 250ms));
  for (const Request* request : requests) {
    EXPECT_TRUE(request->status.ok());
    EXPECT_FALSE(missed(*request, 2)) << "silence says nothing";
  }
}

TEST_F(EndpointMissed, NobodyWaitsForTheWordOfARankThatSaysGoodbye) {
  group_.filter = [](Rank from, Rank, ByteSpan datagram) {
    return from != 2 || testing::type_of(datagram) == wire::PacketType::goodbye;
  };
  auto requests = submit_all(OperationKind::replica_reduce, best_effort(1s));
  requests.erase(requests.begin() + 2);
  pass(10ms);
  EXPECT_FALSE(requests[0]->done);
  group_.engine(2).endpoint().say_goodbye(group_.now());
  EXPECT_TRUE(group_.run(requests, 50ms));
  EXPECT_FALSE(missed(*requests[0], 2));
}

// Any datagram may be lost, reports and ENDs included. A contribution that is reported as missed
// must be in no result.
TEST_F(EndpointMissed, IsNeverSaidOfAContributionThatWasUsed) {
  std::mt19937 random(3);
  group_.filter = [&](Rank, Rank, ByteSpan datagram) {
    return random() % 10 >= (is_contribution(datagram) ? 6u : 3u);
  };
  int unused = 0;
  int told = 0;
  for (int round = 0; round < 300; ++round) {
    const auto requests =
        submit_all(OperationKind::reduce_scatter, best_effort(1s), 128);  // two packets each
    ASSERT_TRUE(group_.run(requests, 2s));
    for (const Request* owner : requests) {
      for (const PeerReport& peer : owner->report.peers) {
        const auto self = static_cast<Rank>(std::find(requests.begin(), requests.end(), owner) -
                                            requests.begin());
        unused += peer.arrived == 0;
        told += missed(*requests[peer.rank], self);
        ASSERT_TRUE(peer.arrived == 0 || !missed(*requests[peer.rank], self)) << "round " << round;
      }
    }
  }
  EXPECT_GT(unused, 1000);
  EXPECT_GT(told, unused * 95 / 100);
}

}  // namespace
}  // namespace leeway::protocol
