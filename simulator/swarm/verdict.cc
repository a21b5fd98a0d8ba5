#include "swarm/verdict.h"

#include "checker/check.h"
#include "checker/checkers.h"

namespace leeway::sim::swarm {
namespace {

std::optional<Failure> failure_of(const CheckRecord& check) {
  if (check.verdict != sim::Verdict::failed) return std::nullopt;
  return Failure{check.id, check.title + ": " + check.first_failure};
}

// Returns the first failed invariant in the order of their numbers.
std::optional<Failure> failure_of(const scenario::Scenario& scenario, const RunRecord& record) {
  for (const CheckRecord& check : record.checks) {
    if (auto failure = failure_of(check)) return failure;
  }
  if (scenario.has_duration_ms() || record.rounds.size() == scenario.rounds()) return std::nullopt;
  return Failure{"end", format_text("nothing is left to happen after %zu of %u rounds",
                                    record.rounds.size(), scenario.rounds())};
}

}  // namespace

Verdict judge(const scenario::Scenario& scenario, std::uint64_t seed, const JudgeOptions& options) {
  RunOptions run_options;
  run_options.stop = options.stop;
  run_options.events_max = kEventsMax;
  Verdict verdict;
  const Result<RunRecord> record = options.run(scenario, seed, run_options);
  if (!record.ok()) {
    verdict.stopped = record.status().code() == StatusCode::kCancelled;
    const bool endless = record.status().code() == StatusCode::kResourceExhausted;
    if (!verdict.stopped)
      verdict.failure = Failure{endless ? "end" : "run", record.status().c_str()};
    return verdict;
  }
  verdict.rounds = record->rounds.size();
  verdict.packets = record->packets;
  verdict.events = record->events;
  verdict.trace_hash = record->trace_hash;
  verdict.failure = failure_of(scenario, *record);
  if (verdict.failure || !options.twice) return verdict;
  const Result<RunRecord> again = options.run(scenario, seed, run_options);
  if (again.ok()) {
    verdict.failure = failure_of(same_trace(*record, *again));
  } else if (again.status().code() != StatusCode::kCancelled) {
    verdict.failure = Failure{"i12", std::string("repeated: ") + again.status().c_str()};
  }
  return verdict;
}

}  // namespace leeway::sim::swarm
