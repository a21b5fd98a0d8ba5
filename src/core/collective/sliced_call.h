// A large collective cut into slices, one for each lane of a process (Options::lanes). A slice is a
// collective of a communicator of its own, so the protocol does not know of the cut.
//
//   all_reduce, broadcast   consecutive parts of the tensor
//   all_gather              the same elements of each rank's block
//
// It does no I/O. Its driver hands slice i to lane i, on each lane in the order of the calls, which
// is the same on all ranks. Slices share nothing, and any may be over first.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/time.h"
#include "collective/request.h"

namespace leeway::collective {

class SlicedCall {
 public:
  // Returns the number of slices for a call on `lanes` lanes, which all ranks decide alike; 1 if it
  // is not cut. No slice is shorter than `slice_bytes`. These calls are not cut:
  // - uneven ones, and those encoded elsewhere;
  // - late work (confirm_use), whose weights are of whole shards;
  // - Codec::automatic, which chooses once for a tensor.
  static std::size_t slices(const OperationSpec& spec, int size, std::size_t lanes,
                            std::size_t slice_bytes);

  // The spec must have been validated for a communicator of `size` ranks. `slices` is at least 2.
  SlicedCall(const OperationSpec& spec, int size, std::size_t slices);

  std::size_t size() const { return slices_.size(); }
  const OperationSpec& slice(std::size_t i) const { return slices_[i]; }

  // Fills in the report of the whole call. Call it when all slices went well. `parts[i]`: the
  // finished request of slice i. `outcome`: the whole call; its report gets the first slice's
  // number.
  void finish(std::span<const Request* const> parts, Request& outcome, Instant now) const;

 private:
  void add_slice(const OperationSpec& spec, std::size_t offset, std::size_t count, int size,
                 std::uint8_t parts);

  std::vector<OperationSpec> slices_;
  std::vector<double> shares_;  // each slice's share of the elements
};

}  // namespace leeway::collective
