// Two endpoints with a hand clock and operations without contents: the protocol without
// collective::Engine.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/endpoint.h"
#include "support/train_datagrams.h"

namespace leeway::protocol {

// A RoundClient whose packets hold only zeros. Records its calls.
class FakeClient final : public RoundClient {
 public:
  static constexpr std::uint32_t kPayloadBytes = 100;

  // Each phase of the plan has `out` packets to the other side and `in` packets from it.
  FakeClient(std::uint32_t out, std::uint32_t in) : out_(out), in_(in) {}

  schedule::PacketGrid outgoing(FlowKind, Rank peer) const override { return grid(out_, peer); }
  schedule::PacketGrid incoming(FlowKind, Rank peer) const override { return grid(in_, peer); }
  const Bitmap* required(FlowKind, Rank) const override { return nullptr; }
  Payload payload(FlowKind, Rank, PacketIndex index, PacketIndex, MutableByteSpan) override {
    sent.push_back(index.value);
    return {payload_};
  }
  Acceptance accept(Rank, const wire::DataHeader& header, ByteSpan payload) override {
    if (payload.size() != kPayloadBytes) return Acceptance::refused;
    accepted.push_back(header.index.value);
    return Acceptance::accepted;
  }
  void on_settled(FlowKind kind, Instant) override {
    events += "settled " + std::to_string(static_cast<int>(kind)) + "; ";
  }
  void on_done(const Status& result, Instant at) override {
    events += "done; ";
    status = result;
    done_at = at;
  }
  void on_closed() override { events += "closed; "; }
  bool done() const { return events.find("done") != std::string::npos; }
  bool closed() const { return events.find("closed") != std::string::npos; }

  RoundPlan plan;                       // plan of its open round
  std::vector<std::uint32_t> sent;      // indices, repairs included
  std::vector<std::uint32_t> accepted;  // indices
  std::string events;
  Status status;
  Instant done_at;

 private:
  static schedule::PacketGrid grid(std::uint32_t packets, Rank) {
    return {std::size_t{packets} * kPayloadBytes, kPayloadBytes, 1};
  }

  std::uint32_t out_;
  std::uint32_t in_;
  std::array<std::byte, kPayloadBytes> payload_{};
};

class EndpointPair {
 public:
  static constexpr Duration kDelay = std::chrono::microseconds(100);

  explicit EndpointPair(std::size_t window = 64) {  // datagrams
    for (const Rank self : {0, 1}) {
      EndpointConfig config;
      config.self = self;
      config.size = 2;
      config.sum_payloads = false;
      config.window_bytes.assign(2, window * config.datagram_bytes);
      config.rtt_initial = 2 * kDelay;
      endpoints_[self] = std::make_unique<Endpoint>(config);
    }
  }

  Endpoint& operator[](Rank rank) { return *endpoints_[rank]; }
  Instant now() const { return now_; }

  // Returns the plan of a collective with one phase. Both ranks must give matching clients.
  RoundPlan collective(Delivery::Kind delivery = Delivery::Kind::exact,
                       Duration deadline = std::chrono::seconds(10)) const {
    RoundPlan plan;
    plan.name = "test";
    plan.tag.delivery = delivery;
    plan.deadline_length = deadline;
    plan.deadline = now_ + deadline;
    PhasePlan& phase = plan.phase(FlowKind::reduce);
    phase.active = true;
    phase.delivery = delivery;
    phase.deadline = plan.deadline;
    phase.repairable = delivery != Delivery::Kind::best_effort;
    return plan;
  }
  RoundPlan message(Rank peer, bool send, Duration deadline = std::chrono::seconds(10)) const {
    RoundPlan plan = collective(Delivery::Kind::exact, deadline);
    std::swap(plan.phase(FlowKind::reduce), plan.phase(FlowKind::point));
    plan.point_peer = peer;
    plan.point_send = send;
    return plan;
  }

  Round* open(Rank rank, const RoundPlan& plan, FakeClient& client) {
    client.plan = plan;
    Round* const round = (*this)[rank].open_round(now_, client.plan, client);
    if (round != nullptr) (*this)[rank].start(now_, *round);
    pump();
    return round;
  }

  // Moves the clock on, delivers what arrives, and wakes the endpoints that are due.
  void pass(Duration time) {
    const Instant end = now_ + time;
    for (pump(); next_event() <= end; pump()) {
      now_ = std::max(now_, next_event());
      while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
        const auto flight = flights_.extract(flights_.begin());
        const auto& [to, bytes] = flight.mapped();
        (*this)[to].on_datagram(now_, 1 - to, bytes);
      }
    }
    now_ = end;
  }

  // Sees every datagram. Returns false to lose it.
  std::function<bool(Rank from, ByteSpan datagram)> filter;

 private:
  Instant next_event() const {
    Instant next = flights_.empty() ? Instant::infinite_future() : Instant{flights_.begin()->first};
    for (const auto& endpoint : endpoints_) next = std::min(next, endpoint->wake_at());
    return next;
  }

  void pump() {
    for (const Rank from : {0, 1}) {
      (*this)[from].on_wake(now_);
      while ((*this)[from].poll_train(now_, *buffer_)) launch(from, buffer_->train());
      (*this)[from].on_wake(now_);
    }
  }

  void launch(Rank from, const Train& train) {
    support::for_each_datagram(train, [&](ByteSpan datagram) {
      if (filter && !filter(from, datagram)) return;
      flights_.emplace((now_ + kDelay).ns,
                       std::pair(static_cast<Rank>(1 - from),
                                 std::vector<std::byte>(datagram.begin(), datagram.end())));
    });
  }

  std::array<std::unique_ptr<Endpoint>, 2> endpoints_;
  Instant now_{1'000'000'000};
  std::multimap<std::int64_t, std::pair<Rank, std::vector<std::byte>>> flights_;
  std::unique_ptr<TrainBuffer> buffer_ = std::make_unique<TrainBuffer>();
};

}  // namespace leeway::protocol
