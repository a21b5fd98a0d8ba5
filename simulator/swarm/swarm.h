// The fault search: draws a scenario for each of many seeds, runs it and judges the run. It finds
// faults for which nobody wrote a test.
//
// Findings do not depend on the number of threads. Without keep_going, only the lowest failing seed
// is reported, and seeds above it may not run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "swarm/verdict.h"

namespace leeway::sim::swarm {

// One seed in kTwiceEvery is run twice, to check that both runs are the same (I12).
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
  // Sum of the trace hashes of all seeds. A sum does not depend on the order of seeds, or on
  // threads.
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
  // If set, is called for each seed instead of running a drawn scenario.
  std::function<Verdict(std::uint64_t seed)> judge;
  const std::atomic<bool>* stop = nullptr;
  // Called after each seed, by any thread, but never by two at once.
  std::function<void(const Tally& so_far)> progress;
};

Tally run_swarm(const SwarmOptions& options);

// Returns the seed that this thread is judging, for the message when a broken contract of the core
// ends the process.
std::uint64_t current_seed();

}  // namespace leeway::sim::swarm
