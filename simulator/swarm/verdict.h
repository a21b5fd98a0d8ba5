// Verdict on one run: the checkers' findings, that it ends, and that it is the same when repeated.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run/run.h"

namespace leeway::sim::swarm {

// sim::run, or a test's substitute.
using RunFunction = std::function<Result<RunRecord>(const scenario::Scenario& scenario,
                                                    std::uint64_t seed, const RunOptions& options)>;

// Most events of a run. A seed of the swarm takes some ten thousand.
inline constexpr std::uint64_t kEventsMax = 60'000'000;

struct Failure {
  // "i1" .. "i21", "run" for a run that could not be made, "end" for one that did not come to its
  // end.
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
