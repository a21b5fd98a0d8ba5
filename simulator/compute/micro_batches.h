// The numbers of completed and of planned micro-batches in one step of a rank.
#pragma once

#include <cstdint>

namespace leeway::sim {

struct MicroBatches {
  std::uint32_t completed = 1;
  std::uint32_t planned = 1;  // at least 1
};

}  // namespace leeway::sim
