// Counts the micro-batches of a rank's step.
#pragma once

#include <cstdint>

namespace leeway::sim {

struct MicroBatches {
  std::uint32_t completed = 1;
  std::uint32_t planned = 1;  // at least 1
};

}  // namespace leeway::sim
