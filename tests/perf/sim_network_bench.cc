// The simulated network alone: constant-rate flows over links, on one core, without endpoints.
//
// chain: the simulator htsim's case of 8 flows with packets of 1,440 B. Each flow passes a queue, a
// pipe, a lossy queue and a pipe; here a queue with its pipe is one link. star: the same flows over
// a shared switch. An item is a packet that was sent.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "network/network.h"
#include "scenario/parse.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kFlows = 8;
constexpr std::uint32_t kBytes = 1440;
constexpr std::int64_t kPacketNs = 1152;  // time of 1,440 B at 10 Gb/s

class Sink : public PacketReceiver {
 public:
  void on_packet(Instant, const Packet&, ByteSpan) override { ++packets; }
  std::uint64_t packets = 0;
};

struct Flows {
  explicit Flows(const std::string& text)
      : topology(Topology::make(scenario::parse_text(text, "bench").value()).value()),
        network(Network::make(topology, 1, queue, 0).value()) {
    network->attach(Traffic::cross, sink);
  }

  void start(std::uint32_t flows) {
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
      queue.push({flow * kPacketNs / flows}, flow, static_cast<std::uint32_t>(EventKind::traffic),
                 0);
    }
  }

  // Sends `packets` more packets; each flow sends one every gap_ns.
  void send(std::uint64_t packets, std::int64_t gap_ns) {
    Event event;
    while (packets > 0) {
      queue.pop(event);
      if (event.kind == static_cast<std::uint32_t>(EventKind::network)) {
        network->on_event(event);
        continue;
      }
      Packet packet;
      packet.from = event.target;
      packet.to = event.target + topology.ranks() / 2;
      packet.bytes = kBytes;
      packet.traffic = Traffic::cross;
      network->send({event.time_ns}, packet);
      queue.push({event.time_ns + gap_ns}, event.target, event.kind, 0);
      --packets;
    }
  }

  EventQueue queue;
  Topology topology;
  Sink sink;
  std::unique_ptr<Network> network;
};

void run(benchmark::State& state, const std::string& scenario, std::uint32_t flows) {
  Flows run(scenario);
  run.start(flows);
  run.send(100'000, kPacketNs);  // until a steady state is reached
  constexpr std::uint64_t kBatch = 10'000;
  for (auto _ : state) run.send(kBatch, kPacketNs);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
  state.counters["delivered"] =
      static_cast<double>(run.sink.packets) /
      static_cast<double>(run.network->counters().sent[static_cast<int>(Traffic::cross)]);
}

std::string chain(const std::string& second) {
  return "ranks: 16 topology { star {} }"
         " link { tier: uplink rate_mbps: 10000 delay_ms { fixed: 0.01 } }"
         " link { tier: downlink rate_mbps: 10000 delay_ms { fixed: 0.01 } " +
         second + " }";
}

BENCHMARK_CAPTURE(run, chain_lossless, chain(""), kFlows);
BENCHMARK_CAPTURE(run, chain, chain("loss { random { p: 0.01 } }"), kFlows);
BENCHMARK_CAPTURE(run, chain_gilbert_elliott, chain("loss { gilbert_elliott { p: 0.01 r: 0.2 } }"),
                  kFlows);
BENCHMARK_CAPTURE(run, chain_everything,
                  chain("loss { random { p: 0.01 } } duplicate { p: 0.01 } reorder { p: 0.01 }"
                        " corrupt { p: 0.01 }"),
                  kFlows);
BENCHMARK_CAPTURE(run, mesh_unlimited, std::string("ranks: 16"), kFlows);
BENCHMARK_CAPTURE(run, mesh_jitter,
                  std::string("ranks: 16 link { rate_mbps: 10000 delay_ms { normal { mean: 1"
                              " deviation: 0.1 } } }"),
                  kFlows);
BENCHMARK_CAPTURE(run, fat_tree_of_512_flows,
                  std::string("ranks: 1024 topology { fat_tree { k: 16 } }"
                              " link { tier: uplink rate_mbps: 10000 delay_ms { fixed: 0.001 } }"
                              " link { tier: fabric rate_mbps: 10000 delay_ms { fixed: 0.001 } }"
                              " link { tier: downlink rate_mbps: 10000 delay_ms { fixed: 0.001 } }"
                              " link { tier: downlink loss { random { p: 0.01 } } }"),
                  512u);

}  // namespace
}  // namespace leeway::sim

BENCHMARK_MAIN();
