// Runs the steps of a gate on a clock that moves by the latencies that a test gives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "budget/step_gate.h"

namespace leeway::budget {

inline constexpr std::int64_t kMs = 1'000'000;

struct StepRunner {
  StepGate& gate;
  Instant now{1'000'000 * kMs};
  bool checks_in_between = false;  // calls should_stop() when half of a micro-batch has passed

  // Runs a step whose micro-batches take `latencies_ns`. Returns how many of them were completed.
  std::uint32_t step(std::span<const std::int64_t> latencies_ns) {
    std::size_t begun = 0;
    while (gate.next(now)) {
      const std::int64_t latency = latencies_ns[begun++];
      now += Duration(latency / 2);
      if (checks_in_between && gate.should_stop(now)) break;
      now += Duration(latency - latency / 2);
    }
    return gate.completed();
  }
  std::uint32_t step_of_ms(const std::vector<std::int64_t>& latencies_ms) {
    std::vector<std::int64_t> ns = latencies_ms;
    for (std::int64_t& latency : ns) latency *= kMs;
    return step(ns);
  }
};

}  // namespace leeway::budget
