// One run: it takes a scenario without sweeps and a seed, and returns everything that happened.
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
  // A run that takes more events fails with kResourceExhausted, because it would not end.
  std::uint64_t events_max = UINT64_MAX;
  // Called after each finished round, on the run's thread.
  std::function<void(std::uint32_t rounds_done, std::int64_t simulated_ns)> progress;
};

// Returns an error if the scenario asks for something that cannot be had (a file that cannot be
// read, gpt without libtorch, a codec that the operation does not take). Whatever happens in
// virtual time is no error but part of the record, even broken invariants.
Result<RunRecord> run(const scenario::Scenario& scenario, std::uint64_t seed,
                      const RunOptions& options = {});

}  // namespace leeway::sim
