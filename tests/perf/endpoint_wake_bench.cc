// Cost of one event of an endpoint, for several numbers of ranks. In an event a data packet
// arrives, and due work is done. An exact collective with all ranks is always open. Every peer
// sends a packet each millisecond and never reports. So every link has a full window, for which the
// endpoint sends probes, and a flow that it waits for. With more ranks a wake-up must not cost
// more. An event may cost more, but only because more links must share the caches.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "protocol/endpoint.h"

namespace leeway::protocol {
namespace {

constexpr std::uint32_t kPackets = 1 << 20;
constexpr std::size_t kPayloadBytes = 128;

class Client final : public RoundClient {
 public:
  schedule::PacketGrid outgoing(FlowKind, Rank) const override { return grid_; }
  schedule::PacketGrid incoming(FlowKind, Rank) const override { return grid_; }
  const Bitmap* required(FlowKind, Rank) const override { return nullptr; }
  Payload payload(FlowKind, Rank, PacketIndex, PacketIndex, MutableByteSpan) override {
    return {payload_};
  }
  Acceptance accept(Rank, const wire::DataHeader&, ByteSpan) override {
    return Acceptance::accepted;
  }
  void on_settled(FlowKind, Instant) override {}
  void on_done(const Status&, Instant) override {}
  void on_closed() override {}

 private:
  schedule::PacketGrid grid_{std::size_t{kPackets} * kPayloadBytes, kPayloadBytes, 1};
  std::array<std::byte, kPayloadBytes> payload_{};
};

class Bench {
 public:
  explicit Bench(int ranks) : ranks_(ranks) {
    EndpointConfig config;
    config.size = ranks;
    config.window_bytes.assign(ranks, 64 * config.datagram_bytes);
    config.sum_payloads = false;
    endpoint_ = std::make_unique<Endpoint>(config);
    plan_.deadline = now_ + std::chrono::hours(10);
    plan_.deadline_length = std::chrono::hours(10);
    PhasePlan& phase = plan_.phase(FlowKind::reduce);
    phase.active = true;
    phase.deadline = plan_.deadline;
    endpoint_->start(now_, *endpoint_->open_round(now_, plan_, client_));
    drain();
  }

  double events_ns(int events) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < events; ++i) event();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / events;
  }
  std::uint64_t wakes() const { return wakes_; }
  double wake_ns() const { return wake_ns_; }

 private:
  void event() {
    now_ += std::chrono::nanoseconds(1'000'000 / (ranks_ - 1));
    const Rank from = static_cast<Rank>(1 + sent_ % (ranks_ - 1));
    const auto index = static_cast<std::uint32_t>(sent_ / (ranks_ - 1));
    ++sent_;
    std::array<std::byte, wire::kDataHeaderBytes + kPayloadBytes> datagram{};
    wire::DataHeader header;
    header.index.value = header.position.value = index % (kPackets - 1);  // never the last
    header.flow_packets = kPackets;
    header.opened_below = 1;
    header.tag_digest = digest_;
    const wire::Prefix prefix{wire::PacketType::data, 1, from, 0, index + 1, false};
    wire::encode_data(prefix, header, 0, datagram);
    endpoint_->on_datagram(now_, from, datagram);
    if (endpoint_->wake_at() <= now_) {
      ++wakes_;
      const auto start = std::chrono::steady_clock::now();
      endpoint_->on_wake(now_);
      wake_ns_ += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                      .count();
    }
    drain();
  }
  void drain() {
    while (endpoint_->poll_train(now_, *buffer_)) {
    }
  }

  int ranks_;
  Instant now_{1'000'000'000};
  std::uint64_t sent_ = 0;
  std::uint64_t wakes_ = 0;
  double wake_ns_ = 0.0;
  RoundPlan plan_;
  std::uint32_t digest_ = wire::digest(plan_.tag, false);
  Client client_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<TrainBuffer> buffer_ = std::make_unique<TrainBuffer>();
};

void run() {
  constexpr int kEvents = 200'000;
  constexpr int kRepeats = 5;
  std::printf("ranks   ns/event   wake-ups/1000 events   ns/wake-up\n");
  for (const int ranks : {8, 64, 512, 1024}) {
    Bench bench(ranks);
    bench.events_ns(kEvents);
    const std::uint64_t wakes = bench.wakes();
    const double wake_ns = bench.wake_ns();
    std::array<double, kRepeats> ns;
    for (double& value : ns) value = bench.events_ns(kEvents);
    std::sort(ns.begin(), ns.end());
    const auto counted = static_cast<double>(bench.wakes() - wakes);
    std::printf("%5d %10.0f %22.1f %12.0f\n", ranks, ns[kRepeats / 2],
                1000.0 * counted / (kEvents * kRepeats), (bench.wake_ns() - wake_ns) / counted);
  }
}

}  // namespace
}  // namespace leeway::protocol

int main() {
  leeway::protocol::run();
}
