// The library's core at both ends of the simulated network, without checkers and workload. Measures
// how many packets a second one processor core simulates, if the library encodes, checks, books,
// reduces and acknowledges every packet. An item is a packet that was sent.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "endpoint/core_endpoints.h"
#include "scenario/parse.h"

namespace leeway::sim {
namespace {

class Group final : private Endpoints::Client {
 public:
  Group(const std::string& text, std::size_t elements)
      : scenario_(scenario::parse_text(text, "bench").value()),
        topology_(Topology::make(scenario_).value()),
        network_(std::move(Network::make(topology_, 1, queue_, 9216).value())),
        endpoints_(
            std::move(CoreEndpoints::make(scenario_, 1, topology_, queue_, *network_).value())) {
    for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) {
      inputs_.emplace_back(elements, 1.0f);
      outputs_.emplace_back(elements, 0.0f);
      specs_.push_back({.kind = collective::OperationKind::all_reduce,
                        .input = std::span<const float>(inputs_[rank]),
                        .output = std::span(outputs_[rank])});
      specs_[rank].options.op = ReduceOp::avg;
      specs_[rank].options.delivery = best_effort(std::chrono::seconds(10));
    }
  }

  // Runs one all_reduce on all ranks. Returns the number of packets sent.
  std::uint64_t round() {
    const std::uint64_t before = sent();
    for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) {
      endpoints_->submit(queue_.now(), rank,
                         {.bytes = specs_[rank].input.bytes(), .spec = &specs_[rank]}, *this);
    }
    open_ = scenario_.ranks();
    Event event;
    while (open_ > 0 && queue_.pop(event)) {
      event.kind == static_cast<std::uint32_t>(EventKind::network) ? network_->on_event(event)
                                                                   : endpoints_->on_event(event);
    }
    return sent() - before;
  }

 private:
  void on_done(Instant, std::uint32_t, const CallResult&) override { --open_; }
  std::uint64_t sent() const {
    std::uint64_t packets = 0;
    for (const std::uint64_t count : network_->counters().sent) packets += count;
    return packets;
  }

  scenario::Scenario scenario_;
  EventQueue queue_;
  Topology topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<CoreEndpoints> endpoints_;
  std::vector<std::vector<float>> inputs_, outputs_;
  std::vector<collective::OperationSpec> specs_;
  std::uint32_t open_ = 0;
};

void all_reduce(benchmark::State& state, const std::string& text) {
  Group group(text + " operation { datagram_bytes: " + std::to_string(state.range(0)) + " }",
              1 << 20);
  group.round();  // memory is taken
  std::int64_t packets = 0;
  for (auto _ : state) packets += static_cast<std::int64_t>(group.round());
  state.SetItemsProcessed(packets);
}

BENCHMARK_CAPTURE(all_reduce, pair,
                  "ranks: 2 topology { pair {} } link { delay_ms { fixed: 0.05 } }")
    ->Arg(512)
    ->Arg(1472);
BENCHMARK_CAPTURE(all_reduce, eight, "ranks: 8 link { delay_ms { fixed: 0.05 } }")
    ->Arg(512)
    ->Arg(1472);
BENCHMARK_CAPTURE(
    all_reduce, star_lossy,
    "ranks: 8 topology { star {} } link { tier: uplink rate_mbps: 10000 queue { bytes: 4000000 } } "
    "link { tier: downlink rate_mbps: 10000 queue { bytes: 4000000 } loss { random { p: 0.01 } } }")
    ->Arg(512)
    ->Arg(1472);

}  // namespace
}  // namespace leeway::sim

BENCHMARK_MAIN();
