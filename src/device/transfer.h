// What an operation on device memory is cut into.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "device/cuda_abi.h"

namespace leeway::device {

class Lane;

// Rows of equal length between memory of streams and staging. In staging they lie one behind the
// other.
struct Copy {
  cuda::Address memory = 0;
  std::size_t offset = 0;  // in the step's staging
  std::size_t bytes = 0;   // of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // from row to row, in memory
};

// A part of an operation: input to staging, network, output from staging.
struct Step {
  std::size_t staging_bytes = 0;
  std::vector<Copy> input;
  std::vector<Copy> output;
  // The network's part: begins it and returns; `done` is called once, on any thread, when it is
  // done with the staging, whatever came of it. Called when the input lies there, in the order of
  // the lane, once for each replay of a graph. Never blocks.
  std::function<void(std::byte* staging, std::function<void()> done)> run;
};

// An operation, or several that are one to the network.
struct Transfer {
  std::shared_ptr<Lane> lane;
  // Those that it waits for, and that wait for it. At least one; the output is copied on the first.
  std::vector<cuda::Stream> streams;
  std::vector<Step> steps;
};

}  // namespace leeway::device
