// Enqueues one call's work on streams that are being captured into a graph.
//
// For each operation a graph has a host function that announces a replay, and then nodes that copy
// to staging, wait for progress words (signal.h), and copy back. Kernels may take the place of the
// copies. Every replay is a new operation to the network. Staging and words belong to the
// operation, and live as long as the graph.
#pragma once

#include <span>

#include "device/stager.h"

namespace leeway::device {

class Capture {
 public:
  // Returns whether all streams of the transfers are being captured. Returns kUnsupported if only
  // some are.
  static Result<bool> of(const Driver& driver, std::span<const Transfer> transfers);

  explicit Capture(Stager& stager) : stager_(stager), lock_(stager.mutex_) {}
  Status run(std::span<const Transfer> transfers);

 private:
  struct Operation;

  // The graph that captures a stream, and the capture's id.
  struct Where {
    cuda::Graph graph = nullptr;
    unsigned long id = 0;
  };
  Result<Where> where(cuda::Stream stream) const;
  Status join_streams(const Transfer& transfer, const Where& where);
  Result<Operation*> keep(const Transfer& transfer, const Where& where);
  Status inputs(const Transfer& transfer, const Where& where, Operation& operation);
  Status input(const Step& step, const Pending& kept, cuda::Stream stream);
  Status sums(const Transfer& transfer, const Operation& operation);
  Status outputs(const Transfer& transfer, const Operation& operation);

  Stager& stager_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace leeway::device
