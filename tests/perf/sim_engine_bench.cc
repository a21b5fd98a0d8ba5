// Speed of the simulator's engine alone on one core: events through its queue (beside
// std::priority_queue), random numbers and trace records. --benchmark_filter=... picks one.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <queue>
#include <vector>

#include "engine/event_queue.h"
#include "engine/geometric.h"
#include "engine/random_stream.h"
#include "engine/trace_hash.h"
#include "engine/variates.h"

namespace leeway::sim {
namespace {

// Distributions of the time until a new event is due.
enum Spread : std::int64_t {
  kExponential = 0,  // mean 1 ms
  kDense,            // mean 10 us; with 100,000 pending events, ten in every nanosecond
  kConstant,         // 50 us: links in order
  kTimers,           // nine packets within 2 us to one timer within 2 s
};

constexpr const char* kSpreadNames[] = {"exponential", "dense", "constant", "timers"};

std::vector<std::int64_t> delays(std::int64_t spread) {
  RandomStream stream(1, 0, Purpose::delay);
  std::vector<std::int64_t> values(1 << 20);
  for (std::int64_t& ns : values) {
    switch (spread) {
      case kExponential:
        ns = exponential(stream, 1'000'000);
        break;
      case kDense:
        ns = exponential(stream, 10'000);
        break;
      case kConstant:
        ns = 50'000;
        break;
      default:
        ns = static_cast<std::int64_t>(stream.below(stream.below(10) == 0 ? 2'000'000'000 : 2'000));
    }
  }
  return values;
}

class Heap {
 public:
  void push(Instant time, std::uint32_t target, std::uint32_t kind, std::uint64_t argument) {
    heap_.push({time.ns, next_sequence_++, target, kind, argument});
  }
  bool pop(Event& event) {
    if (heap_.empty()) return false;
    event = heap_.top();
    heap_.pop();
    return true;
  }

 private:
  struct IsLater {
    bool operator()(const Event& a, const Event& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
    }
  };
  std::priority_queue<Event, std::vector<Event>, IsLater> heap_;
  std::uint64_t next_sequence_ = 0;
};

// The hold model: every event that is taken out is replaced, so the number of pending events is
// constant.
template <typename Queue>
void hold(benchmark::State& state) {
  const std::vector<std::int64_t> after = delays(state.range(1));
  std::size_t next = 0;
  const auto delay = [&] { return after[next++ % after.size()]; };
  Queue queue;
  const std::int64_t pending = state.range(0);
  for (std::int64_t i = 0; i < pending; ++i) queue.push({delay()}, 1, 2, 3);
  Event event;
  const auto replace = [&] {
    queue.pop(event);
    queue.push({event.time_ns + delay()}, event.target, event.kind, event.argument);
  };
  for (std::int64_t i = 0; i < 3 * pending; ++i) replace();  // until a steady state is reached
  for (auto _ : state) replace();
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(kSpreadNames[state.range(1)]);
}

void every_hold(benchmark::internal::Benchmark* hold) {
  hold->ArgsProduct({{1'000, 10'000, 100'000}, {kExponential, kDense, kConstant, kTimers}})
      ->ArgNames({"pending", "spread"});
}
BENCHMARK(hold<EventQueue>)->Apply(every_hold);
BENCHMARK(hold<Heap>)->Apply(every_hold);

template <typename Draw>
void draws(benchmark::State& state, Draw draw) {
  RandomStream stream(1, 2, Purpose::loss);
  for (auto _ : state) benchmark::DoNotOptimize(draw(stream));
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(draws, u64, [](RandomStream& s) { return s.u64(); });
BENCHMARK_CAPTURE(draws, below_1000, [](RandomStream& s) { return s.below(1000); });
BENCHMARK_CAPTURE(draws, bernoulli,
                  [](RandomStream& s) { return s.bernoulli(Probability::of(0.01)); });
BENCHMARK_CAPTURE(draws, geometric_1_percent,
                  [distance = GeometricDistance(Probability::of(0.01))](RandomStream& s) {
                    return distance.draw(s);
                  });
BENCHMARK_CAPTURE(draws, exponential, [](RandomStream& s) { return exponential(s, 1'000'000); });
BENCHMARK_CAPTURE(draws, pareto, [](RandomStream& s) { return pareto(s, 1000, kOneF32 / 3); });
BENCHMARK_CAPTURE(draws, normal, [](RandomStream& s) { return normal(s, 1'000'000, 1000); });
BENCHMARK_CAPTURE(draws, lognormal,
                  [](RandomStream& s) { return lognormal(s, 1000, kOneF32 / 2); });

void trace(benchmark::State& state) {
  TraceHash hash;
  std::int64_t ns = 0;
  for (auto _ : state) {
    ++ns;
    hash.add({ns}, 1, 2, ns, 4);
  }
  benchmark::DoNotOptimize(hash.value());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(trace)->Name("trace_record_of_two_words");

}  // namespace
}  // namespace leeway::sim

BENCHMARK_MAIN();
