// Judges one run. A run passes if no checker failed, the run ended, and a repeated run was the
// same.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run/run.h"

namespace leeway::sim::swarm {

// sim::run, or a substitute in tests.
using RunFunction = std::function<Result<RunRecord>(const scenario::Scenario& scenario,
                                                    std::uint64_t seed, const RunOptions& options)>;

// Limit on the events of a run. A seed of the swarm typically takes ten thousand.
inline constexpr std::uint64_t kEventsMax = 60'000'000;

struct Failure {
  // "i1" .. "i21" for an invariant, "run" if the run could not be made, "end" if it did not end.
  std::string check;
  std::string text;
};

struct Verdict {
  std::optional<Failure> failure;
  bool stopped = false;  // the run was stopped, and nothing is known
  std::uint64_t rounds = 0;
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
};

struct JudgeOptions {
  RunFunction run = sim::run;
  bool twice = false;  // looks at I12
  const std::atomic<bool>* stop = nullptr;
};

Verdict judge(const scenario::Scenario& scenario, std::uint64_t seed, const JudgeOptions& options);

}  // namespace leeway::sim::swarm
