// Measures what many communicators cost a process: threads, sockets, memory, and the time to make
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "leeway/communicator.h"

namespace leeway::tools::perf {

struct Footprint {
  std::int64_t threads = 0;
  std::int64_t sockets = 0;
  std::int64_t memory_bytes = 0;  // resident memory that belongs to this process alone

  friend Footprint operator-(const Footprint& a, const Footprint& b) {
    return {a.threads - b.threads, a.sockets - b.sockets, a.memory_bytes - b.memory_bytes};
  }
};
Footprint measure_footprint();

struct CommunicatorCost {
  int communicators = 0;
  double split_s = 0;  // time to make all of them, on the slowest rank
  Footprint process;   // with all of them open, each used once; the largest values of any rank
};

// Makes `count` communicators of all ranks by split(), and runs an all-reduce of 64 KiB on all of
// them at the same time. They stay open in `communicators`. `before`: the process's footprint
// without them.
Result<CommunicatorCost> open_communicators(
    Communicator& world, int count, const Footprint& before,
    std::vector<std::unique_ptr<Communicator>>& communicators);

}  // namespace leeway::tools::perf
