// Cuts a large collective into slices, one for each lane of a process (Options::lanes). A slice is
// an ordinary collective of another communicator, so the protocol does not know of the cut.
//
//   all_reduce, broadcast   consecutive parts of the tensor
//   all_gather              the same elements of each rank's block
//
// It does no I/O. Its driver submits slice i on lane i, on each lane in the order of the calls,
// which is the same on all ranks. Slices do not depend on each other, so they may end in any order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/time.h"
#include "collective/request.h"

namespace leeway::collective {

class SlicedCall {
 public:
  // Returns the number of slices for a call on `lanes` lanes, or 1 if it is not cut. All ranks
  // decide alike. A slice has at least `slice_bytes` bytes. These calls are not cut:
  // - calls with uneven blocks, or encoded elsewhere;
  // - late work (confirm_use), whose weights are of whole shards;
  // - Codec::automatic, which chooses once for a tensor.
  static std::size_t slices(const OperationSpec& spec, int size, std::size_t lanes,
                            std::size_t slice_bytes);

  // The spec must have been validated for a communicator of `size` ranks. `slices` is at least 2.
  SlicedCall(const OperationSpec& spec, int size, std::size_t slices);

  std::size_t size() const { return slices_.size(); }
  const OperationSpec& slice(std::size_t i) const { return slices_[i]; }

  // Fills in the report of the whole call, `outcome`. Call it when all slices succeeded.
  // `parts[i]`: the finished request of slice i. The report gets the first slice's number.
  void finish(std::span<const Request* const> parts, Request& outcome, Instant now) const;

 private:
  void add_slice(const OperationSpec& spec, std::size_t offset, std::size_t count, int size,
                 std::uint8_t parts);

  std::vector<OperationSpec> slices_;
  std::vector<double> shares_;  // each slice's share of the elements
};

}  // namespace leeway::collective
