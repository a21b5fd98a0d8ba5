// The cost of many communicators to a process: threads, sockets, memory, and the time to make them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "leeway/communicator.h"

namespace leeway::tools::perf {

// Footprint of this process, from /proc.
struct Footprint {
  std::int64_t threads = 0;
  std::int64_t sockets = 0;
  std::int64_t memory_bytes = 0;  // resident and the process's own

  friend Footprint operator-(const Footprint& a, const Footprint& b) {
    return {a.threads - b.threads, a.sockets - b.sockets, a.memory_bytes - b.memory_bytes};
  }
};
Footprint measure_footprint();

struct CommunicatorCost {
  int communicators = 0;
  double split_s = 0;  // all of them, the slowest rank
  Footprint process;   // with all of them, each used once; the most of any rank
};

// `count` communicators of all ranks, made by split() and used at the same time for an all-reduce
// of 64 KiB; they stay open. `before`: the process before it had any.
Result<CommunicatorCost> open_communicators(
    Communicator& world, int count, const Footprint& before,
    std::vector<std::unique_ptr<Communicator>>& communicators);

}  // namespace leeway::tools::perf
