// The parts of an operation on device memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "device/cuda_abi.h"
#include "device/signal.h"
#include "leeway/status.h"

namespace leeway::device {

class Lane;

// Rows of equal length, copied between memory of streams and staging. In staging they lie one
// behind the other.
struct Copy {
  cuda::Address memory = 0;
  std::size_t offset = 0;  // offset in the step's staging
  std::size_t bytes = 0;   // length of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // distance from row to row, in memory
};

// Memory and signal of one run of a step.
struct Site {
  std::byte* staging = nullptr;
  cuda::Address mapped = 0;  // address of the staging for kernels
  Signal signal;
};

// Kernels in the place of a step's copies. The network gets encoded elements, and nothing else goes
// over the bus. Only for devices whose streams wait for values (Device::stream_waits()).
//
// encode(), reduce() and decode() are called once, inside the user's call, and enqueue kernels.
// These run when the host has written a word, and read from staging what to do. They do nothing if
// the word is not the signal's value().
class StepKernels {
 public:
  virtual ~StepKernels() = default;
  // Enqueues kernels that encode the input to staging. They run after `begun`.
  virtual Status encode(const Site& site, cuda::Stream stream) = 0;
  // Enqueues kernels that sum all ranks' contributions and encode the sum to staging. They run
  // after `landed`.
  virtual Status reduce(const Site& site, cuda::Stream stream) = 0;
  // Enqueues kernels that decode other ranks' sums to their places. They run after `done`.
  virtual Status decode(const Site& site, cuda::Stream stream) = 0;
  // The network's part, called when the input may be read. Like Step::run it does not block. It
  // writes the words `begun`, `landed` and `done` as the operation goes on, or drops the signal.
  virtual void run(const Site& site) = 0;
};

// A part of an operation: input to staging, network, output from staging.
struct Step {
  std::size_t staging_bytes = 0;
  std::vector<Copy> input;
  std::vector<Copy> output;
  // The network's part. It begins and returns without blocking. It calls `done` once, on any
  // thread, when it is done with the staging, whatever the outcome. It is called when the input is
  // in staging, in the order of the lane, and once for each replay of a graph.
  std::function<void(std::byte* staging, std::function<void()> done)> run;
  std::shared_ptr<StepKernels> kernels = nullptr;  // if null, copies and `run` are used
};

// A call on one lane, cut into steps. A group's messages are one call.
struct Transfer {
  std::shared_ptr<Lane> lane;
  // Streams for which the operation waits, and which wait for it; at least one. The first also
  // copies the output.
  std::vector<cuda::Stream> streams;
  std::vector<Step> steps;
};

}  // namespace leeway::device
