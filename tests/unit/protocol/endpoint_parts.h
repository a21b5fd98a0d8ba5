// The parts of rank 0's endpoint in a group of four, for tests of single parts. Nothing hands
// events on, and there are no peers.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "endpoint_pair.h"

namespace leeway::protocol {

class EndpointParts : public ::testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr Instant kNow{1'000'000'000};

  static EndpointConfig config() {
    EndpointConfig config;
    config.size = kRanks;
    config.window_bytes.assign(kRanks, 64 * config.datagram_bytes);
    config.peer_timeout = std::chrono::seconds(2);
    config.sum_payloads = false;
    return config;
  }
  static RoundPlan plan_of(FlowKind kind, Delivery::Kind delivery = Delivery::Kind::exact) {
    RoundPlan plan;
    plan.name = "test";
    plan.tag.delivery = delivery;
    plan.deadline_length = std::chrono::seconds(10);
    plan.deadline = kNow + plan.deadline_length;
    PhasePlan& phase = plan.phase(kind);
    phase.active = true;
    phase.delivery = delivery;
    phase.deadline = plan.deadline;
    phase.repairable = delivery != Delivery::Kind::best_effort;
    return plan;
  }
  static RoundPlan message(bool send) {
    RoundPlan plan = plan_of(FlowKind::point);
    plan.point_peer = 1;
    plan.point_send = send;
    return plan;
  }
  Round& open(FakeClient& client, const RoundPlan& plan) {
    client.plan = plan;
    return *opening_.open(kNow, client.plan, client);
  }
  Link& link(Rank peer) { return state_.links[peer]; }
  // Notes a report that `peer` has opened all collectives below `below`.
  void opens(Rank peer, std::uint32_t below) { progress_.on_collectives(kNow, peer, below, 0); }
  // Returns the types of the control datagrams that leave now.
  std::vector<wire::PacketType> control(Instant now = kNow) {
    std::vector<wire::PacketType> types;
    while (control_.poll(now, *buffer_)) {
      wire::Prefix prefix;
      const Train& train = buffer_->train();
      const ByteSpan first(train.slices.front().data, train.segment_bytes);
      EXPECT_EQ(wire::peek_prefix(first, prefix), wire::Refusal::none);
      types.push_back(prefix.type);
    }
    return types;
  }
  // Sends all data that may leave. Returns the number of trains.
  int data(Instant now = kNow) {
    int trains = 0;
    for (; sender_.poll(now, *buffer_); ++trains) {
    }
    return trains;
  }

  EndpointState state_{config(), {}};
  PacketOrder order_{state_.config};
  WatchedTags tags_{kRanks, state_.rounds};
  Settling settling_{state_};
  Progress progress_{state_, settling_};
  Inquiry inquiry_{state_};
  ControlWriter control_{state_, settling_.failures()};
  Sender sender_{state_, order_, control_, progress_};
  Receiver receiver_{state_, settling_, progress_, inquiry_, tags_};
  ReportReader reports_{state_, settling_, progress_, tags_};
  Liveness liveness_{state_, settling_, tags_};
  Leaving leaving_{state_};
  Opening opening_{state_, order_, inquiry_, liveness_};
  std::unique_ptr<TrainBuffer> buffer_ = std::make_unique<TrainBuffer>();
};

}  // namespace leeway::protocol
