// What an operation on device memory is cut into.
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

// Rows of equal length between memory of streams and staging. In staging they lie one behind the
// other.
struct Copy {
  cuda::Address memory = 0;
  std::size_t offset = 0;  // in the step's staging
  std::size_t bytes = 0;   // of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // from row to row, in memory
};

// Where one step's run takes place.
struct Site {
  std::byte* staging = nullptr;
  cuda::Address mapped = 0;  // where kernels see the staging
  Signal signal;
};

// Kernels in the place of a step's copies: the network sees encoded elements, and nothing else goes
// over the bus. Only of devices whose streams wait for values (Device::stream_waits()).
//
// encode(), reduce() and decode() are called once, inside the user's call. Each enqueues what its
// run is to do, which is known later: kernels read it from staging. Where the word that they stand
// behind has no value() of the signal, they do nothing.
class StepKernels {
 public:
  virtual ~StepKernels() = default;
  // Behind `begun`: the input, encoded, to staging.
  virtual Status encode(const Site& site, cuda::Stream stream) = 0;
  // Behind `landed`: contributions of all ranks, summed; the sum, encoded, to staging.
  virtual Status reduce(const Site& site, cuda::Stream stream) = 0;
  // Behind `done`: other ranks' sums, decoded, to where they belong.
  virtual Status decode(const Site& site, cuda::Stream stream) = 0;
  // The network's part, as Step::run, from the moment when the input may be read. Tells begun,
  // landed and done of the signal, or drops it.
  virtual void run(const Site& site) = 0;
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
  std::shared_ptr<StepKernels> kernels = nullptr;  // null: copies and `run`
};

// An operation, or several that are one to the network.
struct Transfer {
  std::shared_ptr<Lane> lane;
  // Those that it waits for, and that wait for it. At least one; the output is copied on the first.
  std::vector<cuda::Stream> streams;
  std::vector<Step> steps;
};

}  // namespace leeway::device
