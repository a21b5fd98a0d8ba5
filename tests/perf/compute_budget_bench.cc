// Measures two costs of a compute budget. The first is the time of a check, beside the time of the
// clock reading in it. The second is how long steps wait while ranks exchange latencies to choose
// the automatic threshold.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "leeway/compute_budget.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The budget of a single rank, with a threshold that is checked but never reached.
class Lone {
 public:
  explicit Lone(ComputeBudgetOptions options) {
    options.threshold = 10h;
    options.warm_up_steps = 0;
    options.window_steps = 0;
    group_ = Communicator::create_inproc(1).value();
    budget_ = ComputeBudget::create(*group_[0], options).value();
  }
  ComputeBudget& operator*() { return *budget_; }

 private:
  std::vector<std::unique_ptr<Communicator>> group_;
  std::unique_ptr<ComputeBudget> budget_;
};

void steady_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Clock::now());
}
BENCHMARK(steady_clock);

// Measures a check. The mean also includes those checks at which one step ends and the next begins.
void next_micro_batch(benchmark::State& state, ComputeBudgetOptions options) {
  options.micro_batches = static_cast<std::uint32_t>(state.range(0));
  Lone budget(options);
  for (auto _ : state) benchmark::DoNotOptimize((*budget).next_micro_batch());
}
BENCHMARK_CAPTURE(next_micro_batch, steady_clock, ComputeBudgetOptions{})->Arg(12)->Arg(4096);
BENCHMARK_CAPTURE(next_micro_batch, own_clock,
                  ComputeBudgetOptions{
                      .clock = [now = Duration(0)]() mutable { return now += 1us; }})
    ->Arg(12);
BENCHMARK_CAPTURE(next_micro_batch, device_seconds,
                  ComputeBudgetOptions{.device_seconds = [] { return 1e-6; }})
    ->Arg(12);

void should_stop(benchmark::State& state) {
  Lone budget({.micro_batches = 12});
  (*budget).next_micro_batch();
  for (auto _ : state) benchmark::DoNotOptimize((*budget).should_stop());
}
BENCHMARK(should_stop);

// --- exchanges ---------------------------------------------------------------------------------

constexpr std::uint32_t kMicroBatches = 12;
constexpr std::uint32_t kWindow = 44;
constexpr auto kMicroBatchTime = 200us;  // time of an accelerator: the host sleeps

struct Begins {
  Duration sum{0};
  Duration longest{0};
  std::uint64_t count = 0;
};
// Times at the begin of steps. Elements 0 to 2 are for steps 0, 2 and 4 of a window, where an
// exchange begins or is looked at. Element 3 is for all other steps.
using Path = std::array<Begins, 4>;

void take_steps(Communicator& communicator, int windows, Path& path,
                ComputeStatistics& statistics) {
  auto budget =
      ComputeBudget::create(
          communicator, {.micro_batches = kMicroBatches, .warm_up_steps = 0, .reestimate_steps = 1})
          .value();
  std::vector<float> gradient(1 << 16);
  for (std::uint32_t step = 0; step < windows * kWindow + 5; ++step) {
    const auto before = Clock::now();
    budget->next_micro_batch();
    const Duration took = Clock::now() - before;
    const std::uint32_t place = step % kWindow;
    Begins& begins = path[step >= kWindow && place <= 4 && place % 2 == 0 ? place / 2 : 3];
    begins.sum += took;
    begins.longest = std::max(begins.longest, took);
    ++begins.count;
    do {
      std::this_thread::sleep_for(kMicroBatchTime);
    } while (budget->next_micro_batch());
    (void)communicator.all_reduce(std::span(gradient),
                                  {.op = ReduceOp::avg, .weight = budget->weight()});
  }
  statistics = budget->statistics();
}

// An iteration has 20 windows. The counters are mean times in us of rank 0's first
// next_micro_batch() of a step, by the step's place in its window.
void exchanges(benchmark::State& state) {
  constexpr int kWindows = 20;
  for (auto _ : state) {
    auto group = Communicator::create_inproc(static_cast<int>(state.range(0))).value();
    std::vector<Path> paths(group.size());
    std::vector<ComputeStatistics> statistics(group.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      threads.emplace_back(
          [&, rank] { take_steps(*group[rank], kWindows, paths[rank], statistics[rank]); });
    }
    for (auto& thread : threads) thread.join();
    constexpr const char* kNames[] = {"bounds", "tables", "conclusion", "other"};
    for (std::size_t place = 0; place < paths[0].size(); ++place) {
      const Begins& begins = paths[0][place];
      const double us = static_cast<double>(begins.sum.count()) / 1e3;
      state.counters[kNames[place]] = us / static_cast<double>(begins.count);
    }
    state.counters["waits"] = static_cast<double>(statistics[0].exchange_waits);
    state.counters["windows"] = static_cast<double>(statistics[0].exchanges);
  }
}
BENCHMARK(exchanges)->Arg(2)->Arg(4)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace leeway

BENCHMARK_MAIN();
