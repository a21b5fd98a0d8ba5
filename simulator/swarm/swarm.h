// Runs many seeds, each of which is a scenario of its own, and judges each run. The search finds
// faults that no test was written for.
//
// What is found does not depend on the number of threads. Without keep_going only the lowest
// failing seed is reported, and seeds above it may not have been run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "swarm/verdict.h"

namespace leeway::sim::swarm {

// One of kTwiceEvery seeds is run twice (I12).
inline constexpr std::uint64_t kTwiceEvery = 16;
inline bool runs_twice(std::uint64_t seed) {
  return seed % kTwiceEvery == 0;
}

struct SeedFailure {
  std::uint64_t seed = 0;
  Failure failure;
};

struct Tally {
  std::uint64_t seeds = 0;  // seeds that were judged
  std::uint64_t rounds = 0;
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  // Hash of all events of each seed: a sum, so that neither the order of seeds matters nor which
  // thread judged them.
  std::uint64_t trace_hash = 0;
  std::vector<SeedFailure> failures;  // by seed

  // Adds a tally of other seeds.
  void add(const Tally& other);
};

struct SwarmOptions {
  std::uint64_t from = 1;
  std::uint64_t count = 1;
  std::uint64_t every = 1;  // judges the seeds from, from + every, from + 2 every, ...
  unsigned jobs = 1;
  bool keep_going = false;
  RunFunction run = sim::run;
  // Replaces the run of a drawn scenario.
  std::function<Verdict(std::uint64_t seed)> judge;
  const std::atomic<bool>* stop = nullptr;
  // Called after each seed, by any thread, one call at a time.
  std::function<void(const Tally& so_far)> progress;
};

Tally run_swarm(const SwarmOptions& options);

// The seed that this thread is judging. It is for the message about a broken contract of the core,
// which ends the process.
std::uint64_t current_seed();

}  // namespace leeway::sim::swarm
