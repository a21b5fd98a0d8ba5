// Packets a second and peak memory of large groups at one switch: all_reduces by the library's
// core, without payloads.
//
//   sim_scale_bench                     64 and 1,024 ranks, small tensors
//   sim_scale_bench RANKS BYTES [LOSS]  one all_reduce of that size
//
// 100 Gb/s links, 1 us each way a link, drop-tail queues of 32 MB, datagrams of 1,412 bytes, best
// effort with an exact spread half.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "endpoint/core_endpoints.h"
#include "scenario/parse.h"

namespace {

using namespace leeway;
using namespace leeway::sim;

class Counter final : public Endpoints::Client {
 public:
  void on_done(Instant now, std::uint32_t, const CallResult& result) override {
    ++done;
    failed += !result.status.ok();
    arrived += result.arrived;
    expected += result.expected;
    last = now;
  }
  std::uint32_t done = 0;
  std::uint32_t failed = 0;
  std::uint64_t arrived = 0;
  std::uint64_t expected = 0;
  Instant last;
};

scenario::Scenario star(std::uint32_t ranks, std::uint64_t bytes, const char* loss) {
  const std::string text = "ranks: " + std::to_string(ranks) +
                           " contents: false topology { star {} }"
                           " operation { kind: all_reduce datagram_bytes: 1412 bytes: " +
                           std::to_string(bytes) +
                           " delivery { kind: best_effort deadline_ms: 10000 } }"
                           " link { tier: uplink rate_mbps: 100000 delay_ms { fixed: 0.001 }"
                           "   queue { bytes: 32000000 } }"
                           " link { tier: downlink rate_mbps: 100000 delay_ms { fixed: 0.001 }"
                           "   queue { bytes: 32000000 } loss { random { p: " +
                           loss + " } } }";
  auto scenario = scenario::parse_text(text, "bench");
  if (!scenario.ok()) {
    std::fprintf(stderr, "%s\n", scenario.status().c_str());
    std::exit(1);
  }
  return *scenario;
}

rusage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// Returns this process's processor time, which other load does not change.
double processor_seconds() {
  const rusage usage = usage_now();
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double peak_megabytes() {
  return static_cast<double>(usage_now().ru_maxrss) / 1024.0;
}

void measure(std::uint32_t ranks, std::uint64_t bytes, const char* loss) {
  const double begin = processor_seconds();
  const scenario::Scenario scenario = star(ranks, bytes, loss);
  const auto topology = Topology::make(scenario);
  EventQueue queue;
  const auto network = Network::make(*topology, 1, queue, scenario.operation().datagram_bytes());
  const auto endpoints = CoreEndpoints::make(scenario, 1, *topology, queue, **network);
  Counter counter;
  const ConstTensorView input(nullptr, bytes / sizeof(float), DataType::f32);
  collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce,
                                 .input = input,
                                 .output = {nullptr, input.count, DataType::f32},
                                 .contents = false};
  spec.options.op = ReduceOp::avg;
  spec.options.delivery = best_effort(std::chrono::seconds(10));
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    (*endpoints)->submit(Instant{0}, rank, {.bytes = bytes, .spec = &spec}, counter);
  Event event;
  std::uint64_t events = 0;
  while (counter.done < ranks && queue.pop(event)) {
    ++events;
    (*network)->look_ahead();
    if (event.kind == static_cast<std::uint32_t>(EventKind::network))
      (*network)->on_event(event);
    else
      (*endpoints)->on_event(event);
  }
  const double took = processor_seconds() - begin;
  const NetworkCounters& packets = (*network)->counters();
  const double sent = static_cast<double>(packets.sent[0] + packets.sent[1]);
  std::printf(
      "%u ranks, %llu bytes, loss %s: %u done, %u failed, %.2f processor s; %.3e data + %.3e "
      "control "
      "packets, "
      "%.2f M packets/s, %.2f M data/s, %.3e events; lost %.3e; arrived %.5f; simulated %.3f ms; "
      "peak %.0f MB\n",
      ranks, static_cast<unsigned long long>(bytes), loss, counter.done, counter.failed, took,
      static_cast<double>(packets.sent[0]), static_cast<double>(packets.sent[1]), sent / took / 1e6,
      static_cast<double>(packets.sent[0]) / took / 1e6, static_cast<double>(events),
      static_cast<double>(packets.lost[0] + packets.lost[1]),
      static_cast<double>(counter.arrived) / static_cast<double>(counter.expected),
      static_cast<double>(counter.last.ns) / 1e6, peak_megabytes());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3) {
    measure(static_cast<std::uint32_t>(std::atoi(argv[1])), std::strtoull(argv[2], nullptr, 10),
            argc > 3 ? argv[3] : "0");
    return 0;
  }
  measure(64, 16 << 20, "0");
  measure(1024, 3'000'000, "0");
}
