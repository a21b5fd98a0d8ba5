// Runs one scenario without sweeps with one seed, and returns a record of what happened.
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
  // Limit on events. A run that needs more fails with kResourceExhausted, because it may never end.
  std::uint64_t events_max = UINT64_MAX;
  // Called after each finished round, on the run's thread.
  std::function<void(std::uint32_t rounds_done, std::int64_t simulated_ns)> progress;
};

// Returns an error if the run cannot be made: a file cannot be read, gpt lacks libtorch, the
// operation does not take a codec. Whatever happens in virtual time, even a broken invariant, is
// part of the record instead.
Result<RunRecord> run(const scenario::Scenario& scenario, std::uint64_t seed,
                      const RunOptions& options = {});

}  // namespace leeway::sim
