// The speed-up by compute thresholds, which must grow with the number of workers. Latencies have
// the noise of arXiv 2306.10598's code: a step has 12 micro-batches of 0.45 s on average, and 0.5 s
// of communication. The library's budget and threshold search decide which micro-batches a worker
// drops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "compute/budgeted_compute.h"
#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

using scenario::Compute;

constexpr std::uint32_t kMicroBatches = 12;
constexpr Duration kCommunication = std::chrono::milliseconds(500);
constexpr std::uint64_t kSeedOfSearch = 1;
constexpr std::uint64_t kSeedOfMeasurement = 2;

Compute::DropCompute paper_noise() {
  Compute::DropCompute compute;
  compute.set_micro_batch_ms(300);  // which the noise prolongs by half on average
  compute.set_micro_batches(kMicroBatches);
  compute.set_forward_share(1.0 / 3);  // a backward pass costs as much as two forward passes
  return compute;
}

struct Outcome {
  double drop_rate = 0;
  double speedup = 0;  // samples a second, relative to those without a threshold
};

// Simulates synchronous steps of all ranks; steps before `first_counted` are not counted.
Outcome train(const Compute::DropCompute& options, std::uint32_t ranks, std::uint32_t steps,
              std::uint64_t seed, std::uint32_t first_counted = 0,
              std::optional<Duration>* threshold = nullptr) {
  BudgetedCompute compute(options, ranks);
  std::vector<RandomStream> streams;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    streams.emplace_back(seed, rank, Purpose::compute);
  }
  Instant now;
  double time = 0, full_time = 0, completed = 0, planned = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::int64_t longest_ns = 0, longest_full_ns = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const ComputeDraw draw = compute.draw(now, rank, step, streams[rank], kOneF32);
      longest_ns = std::max(longest_ns, draw.ns);
      longest_full_ns = std::max(longest_full_ns, draw.full_ns);
      if (step < first_counted) continue;
      completed += draw.micro_batches.completed;
      planned += draw.micro_batches.planned;
      if (threshold != nullptr) *threshold = Duration(draw.threshold_ns);
    }
    now += Duration(longest_ns) + kCommunication;
    if (step < first_counted) continue;
    time += static_cast<double>(longest_ns + kCommunication.count());
    full_time += static_cast<double>(longest_full_ns + kCommunication.count());
  }
  return {1 - completed / planned, completed / planned * full_time / time};
}

Outcome train_at(double threshold_ms, std::uint32_t ranks, std::uint32_t steps) {
  Compute::DropCompute options = paper_noise();
  options.set_threshold_ms(threshold_ms);
  return train(options, ranks, steps, kSeedOfMeasurement);
}

// Returns the threshold that the library's search finds. It searches in the latencies of 44 steps,
// as the paper's code does.
double searched_ms(std::uint32_t ranks) {
  Compute::DropCompute options = paper_noise();
  options.set_warm_up_rounds(5);
  options.mutable_threshold_auto();
  std::optional<Duration> threshold;
  constexpr std::uint32_t kAdopted = 5 + 44 + 1;
  train(options, ranks, kAdopted + 1, kSeedOfSearch, kAdopted, &threshold);
  return static_cast<double>(threshold.value_or(Duration(0)).count()) / 1e6;
}

struct BestThreshold {
  double ms = 0;
  double speedup = 0;
};

BestThreshold best_by_brute_force(std::uint32_t ranks, std::uint32_t steps) {
  BestThreshold best;
  for (double ms = 4000; ms <= 6500; ms += 50) {
    const double speedup = train_at(ms, ranks, steps).speedup;
    if (speedup > best.speedup) best = {ms, speedup};
  }
  return best;
}

struct Size {
  std::uint32_t ranks;
  std::uint32_t steps;
  double speedup_min;
};
constexpr Size kSizes[] = {
    {2, 3000, 1.0}, {8, 800, 1.05}, {64, 100, 1.10}, {200, 60, 1.15}, {1024, 20, 1.15}};

TEST(ComputeThreshold, SpeedsUpMoreTheMoreWorkersThereAre) {
  std::printf("%8s %14s %10s %10s %18s\n", "workers", "automatic ms", "drop", "speed-up",
              "best (at ms)");
  double before = 0;
  for (const Size& size : kSizes) {
    const double automatic_ms = searched_ms(size.ranks);
    const Outcome automatic = train_at(automatic_ms, size.ranks, size.steps);
    const BestThreshold best = best_by_brute_force(size.ranks, size.steps);
    std::printf("%8u %14.1f %9.2f%% %10.4f %10.4f (%.0f)\n", size.ranks, automatic_ms,
                100 * automatic.drop_rate, automatic.speedup, best.speedup, best.ms);
    EXPECT_GE(automatic.speedup, size.speedup_min) << size.ranks;
    EXPECT_LE(automatic.drop_rate, 0.12) << size.ranks;
    EXPECT_GT(automatic.speedup, before) << size.ranks;
    EXPECT_GE(automatic.speedup, 0.99 * best.speedup) << size.ranks;
    before = automatic.speedup;
  }
}

}  // namespace
}  // namespace leeway::sim
