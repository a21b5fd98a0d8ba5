// How long a rank computes before it submits a round: the straggler models of a scenario.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

struct ComputeDraw {
  std::int64_t ns = 0;
  double weight = 1;  // share of the planned micro-batches that was completed; below 1 with a
                      // DropCompute threshold only
};

class ComputeTimes {
 public:
  // The scenario is valid. Trace files are read here; an error names the file and the line.
  static Result<ComputeTimes> make(const scenario::Scenario& scenario, std::uint64_t seed);

  // Asked once per rank and round, rounds rising. Slow ranks (Scenario.slow) included.
  ComputeDraw draw(std::uint32_t rank, std::uint32_t round);
};

}  // namespace leeway::sim
