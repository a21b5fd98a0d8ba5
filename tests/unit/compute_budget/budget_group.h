// Ranks in one process whose steps run on hand clocks. Nothing is computed; tests set the time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "leeway/compute_budget.h"

namespace leeway {

inline constexpr Duration kMs = std::chrono::milliseconds(1);

// One rank with its budget and its clock.
struct Worker {
  Communicator& communicator;
  Duration now{0};
  std::unique_ptr<ComputeBudget> budget = nullptr;

  Rank rank() const { return communicator.rank(); }

  // Runs a step whose micro-batches take `latencies`. If `checks`, calls should_stop() half-way
  // through each micro-batch. Returns how many micro-batches were completed.
  std::uint32_t step(const std::vector<Duration>& latencies, bool checks = false) {
    std::size_t begun = 0;
    while (budget->next_micro_batch()) {
      const Duration latency = latencies[begun++];
      now += latency / 2;
      if (checks && budget->should_stop()) break;
      now += latency - latency / 2;
    }
    return budget->completed();
  }
};

using Budgets = std::function<ComputeBudgetOptions(Rank)>;

// Runs `body` for every rank on a thread of its own. Budgets without a clock get the worker's
// clock.
inline void on_workers(int size, const Budgets& options, const std::function<void(Worker&)>& body) {
  auto group = Communicator::create_inproc(size);
  ASSERT_TRUE(group.ok()) << group.status().text();
  std::vector<std::thread> threads;
  for (auto& communicator : *group) {
    threads.emplace_back([&] {
      Worker worker{*communicator};
      ComputeBudgetOptions own = options(worker.rank());
      if (!own.clock) own.clock = [&worker] { return worker.now; };
      auto budget = ComputeBudget::create(*communicator, own);
      ASSERT_TRUE(budget.ok()) << budget.status().text();
      worker.budget = std::move(*budget);
      body(worker);
    });
  }
  for (auto& thread : threads) thread.join();
}

inline void on_one_worker(const ComputeBudgetOptions& options,
                          const std::function<void(Worker&)>& body) {
  on_workers(
      1, [&](Rank) { return options; }, body);
}

}  // namespace leeway
