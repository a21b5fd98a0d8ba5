// The simulated network alone at full speed: 8 ranks at one switch; rank i sends to rank i + 1 at a
// constant rate, and the last link of each packet loses 1 %. Nothing else is simulated, so this is
// the cost of a packet: one event of its source and one for each of its two links.
//
// The case must be the same as in tools/simulators/ns3_star.cc; tools/compare_simulators runs both.
// Prints one line of JSON.
//
//   sim_star_bench [--packets=N] [--seed=N]
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "network/network.h"
#include "scenario/parse.h"

namespace leeway::sim {
namespace {

constexpr std::string_view kStar = R"(
ranks: 8
topology { star {} }
link { tier: uplink rate_mbps: 1000 delay_ms { fixed: 1 } queue { packets: 100 } }
link {
  tier: downlink
  rate_mbps: 1000
  delay_ms { fixed: 1 }
  queue { packets: 100 }
  loss { random { p: 0.01 } }
}
)";
constexpr std::uint32_t kRanks = 8;
constexpr std::uint32_t kPayloadBytes = 1440;
constexpr std::int64_t kIntervalNs = 14400;  // interval of one source: 800 Mb/s of payload

// Sources that send at a constant rate, with one event for each packet, and receivers that count
// packets.
class ConstantRate : public PacketReceiver {
 public:
  ConstantRate(EventQueue& queue, Network& network, std::uint64_t packets_each)
      : queue_(queue), network_(network) {
    left_.fill(packets_each);
    network.attach(Traffic::cross, *this);
    if (packets_each == 0) return;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      schedule({rank * kIntervalNs / kRanks}, rank);
    }
  }

  void on_event(const Event& event) {
    const Instant now{event.time_ns};
    const std::uint32_t rank = event.target;
    Packet packet;
    packet.from = rank;
    packet.to = (rank + 1) % kRanks;
    packet.bytes = kPayloadBytes + kHeaderBytes;
    packet.traffic = Traffic::cross;
    packet.word = --left_[rank];
    network_.send(now, packet);
    if (left_[rank] > 0) schedule({now.ns + kIntervalNs}, rank);
  }

  void on_packet(Instant, const Packet&, ByteSpan) override { ++delivered_; }
  std::uint64_t delivered() const { return delivered_; }

 private:
  void schedule(Instant time, std::uint32_t rank) {
    queue_.push(time, rank, static_cast<std::uint32_t>(EventKind::traffic), 0);
  }

  EventQueue& queue_;
  Network& network_;
  std::array<std::uint64_t, kRanks> left_{};
  std::uint64_t delivered_ = 0;
};

struct Run {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::uint64_t events = 0;
  double seconds = 0;  // processor time without construction
  std::uint64_t trace_hash = 0;
};

Result<Run> run(std::uint64_t packets, std::uint64_t seed) {
  const auto scenario = scenario::parse_text(kStar, "star");
  if (!scenario.ok()) return scenario.status();
  const auto topology = Topology::make(*scenario);
  if (!topology.ok()) return topology.status();
  EventQueue queue;
  const auto network = Network::make(*topology, seed, queue, 0);
  if (!network.ok()) return network.status();
  ConstantRate traffic(queue, **network, packets / kRanks);

  Run run;
  const std::clock_t begin = std::clock();
  for (Event event; queue.pop(event); ++run.events) {
    if (event.kind == static_cast<std::uint32_t>(EventKind::network)) {
      (*network)->on_event(event);
    } else {
      traffic.on_event(event);
    }
  }
  run.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  run.sent = (*network)->counters().sent[static_cast<std::size_t>(Traffic::cross)];
  run.delivered = traffic.delivered();
  run.trace_hash = (*network)->trace().value();
  return run;
}

// Returns the number after `name` in `argument`, or `value` if it is another argument.
std::uint64_t number_of(std::string_view argument, std::string_view name, std::uint64_t value) {
  if (!argument.starts_with(name)) return value;
  return std::strtoull(argument.data() + name.size(), nullptr, 10);
}

}  // namespace
}  // namespace leeway::sim

int main(int argc, char** argv) {
  std::uint64_t packets = 10'000'000;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    packets = leeway::sim::number_of(argv[i], "--packets=", packets);
    seed = leeway::sim::number_of(argv[i], "--seed=", seed);
  }
  const auto run = leeway::sim::run(packets, seed);
  if (!run.ok()) {
    std::fprintf(stderr, "%s\n", run.status().c_str());
    return 1;
  }
  std::printf(
      "{\"sent\": %llu, \"delivered\": %llu, \"events\": %llu, \"seconds\": %.6f, "
      "\"trace_hash\": \"%016llx\"}\n",
      static_cast<unsigned long long>(run->sent), static_cast<unsigned long long>(run->delivered),
      static_cast<unsigned long long>(run->events), run->seconds,
      static_cast<unsigned long long>(run->trace_hash));
}
