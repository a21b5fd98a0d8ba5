#include "swarm/swarm.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/trace_hash.h"
#include "swarm/draw.h"

namespace leeway::sim::swarm {
namespace {

thread_local std::uint64_t judged_seed = 0;

void sort_by_seed(std::vector<SeedFailure>& failures) {
  std::sort(failures.begin(), failures.end(),
            [](const SeedFailure& a, const SeedFailure& b) { return a.seed < b.seed; });
}

class Pool {
 public:
  explicit Pool(const SwarmOptions& options) : options_(options) {}

  Tally work() {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < options_.jobs; ++i) threads.emplace_back([this] { judge_seeds(); });
    judge_seeds();
    for (std::thread& thread : threads) thread.join();
    sort_by_seed(tally_.failures);
    if (!options_.keep_going && tally_.failures.size() > 1) tally_.failures.resize(1);
    return std::move(tally_);
  }

 private:
  bool stopped() const { return options_.stop != nullptr && *options_.stop; }

  // Takes seeds in rising order, so that all seeds below a failing one are judged.
  void judge_seeds() {
    for (std::uint64_t index = next_++; index < options_.count && !stopped(); index = next_++) {
      if (!options_.keep_going && failed_) return;
      judge_seed(options_.from + index * options_.every);
    }
  }

  void judge_seed(std::uint64_t seed) {
    judged_seed = seed;
    const Verdict verdict =
        options_.judge
            ? options_.judge(seed)
            : judge(draw_scenario(seed), seed,
                    {.run = options_.run, .twice = runs_twice(seed), .stop = options_.stop});
    if (verdict.stopped) return;
    const std::scoped_lock lock(mutex_);
    ++tally_.seeds;
    tally_.rounds += verdict.rounds;
    tally_.packets += verdict.packets;
    tally_.events += verdict.events;
    TraceHash hash;
    hash.add_run(seed);
    hash.add_run(verdict.trace_hash);
    tally_.trace_hash += hash.value();
    if (verdict.failure) {
      tally_.failures.push_back({seed, *verdict.failure});
      failed_ = true;
    }
    if (options_.progress) options_.progress(tally_);
  }

  const SwarmOptions& options_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Tally tally_;
};

}  // namespace

void Tally::add(const Tally& other) {
  seeds += other.seeds;
  rounds += other.rounds;
  packets += other.packets;
  events += other.events;
  trace_hash += other.trace_hash;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  sort_by_seed(failures);
}

Tally run_swarm(const SwarmOptions& options) {
  return Pool(options).work();
}

std::uint64_t current_seed() {
  return judged_seed;
}

}  // namespace leeway::sim::swarm
