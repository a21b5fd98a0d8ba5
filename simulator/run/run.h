// One run: a scenario without sweeps and a seed in, everything that happened out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "leeway/status.h"
#include "run/run_record.h"
#include "scenario.pb.h"
#include "workload/workload.h"

namespace leeway::sim {

using WorkloadFactory = std::function<Result<std::unique_ptr<Workload>>(
    const scenario::Scenario& scenario, std::uint64_t seed)>;

struct RunOptions {
  PacketObserver* packets = nullptr;        // sees every step of every packet
  const std::atomic<bool>* stop = nullptr;  // gives up with kCancelled once it is true
  WorkloadFactory workload = make_workload;
  // A run that takes more fails with kResourceExhausted: it would not end.
  std::uint64_t events_max = UINT64_MAX;
  // Called after each finished round, from the run's thread.
  std::function<void(std::uint32_t rounds_done, std::int64_t simulated_ns)> progress;
};

// Returns an error if the scenario asks for something that cannot be had (a file that cannot be
// read, gpt without libtorch, a codec that the operation does not take). Events in virtual time are
// no failure but part of the record, broken invariants included.
Result<RunRecord> run(const scenario::Scenario& scenario, std::uint64_t seed,
                      const RunOptions& options = {});

}  // namespace leeway::sim
