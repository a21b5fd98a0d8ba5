// Slices that one rank of a ring sends to its successor and receives from its predecessor in one
// call, in order.
//
// all_reduce, reduce_scatter, all_gather: the tensor is cut into one chunk per rank, and each chunk
// into slices. In step s rank r sends chunk r - s and receives chunk r - s - 1. So the i-th slice
// received is later sent as slice i + slices_per_chunk; the first chunk sent is the rank's own.
// broadcast is a pipeline from rank 0 to the last rank: each rank passes on what it receives.
#pragma once

#include <cstdint>
#include <optional>

#include "endpoint/endpoints.h"

namespace leeway::sim {

class RingPlan {
 public:
  RingPlan() = default;  // a plan without slices

  // Returns nullopt for kinds of calls that a ring cannot do.
  static std::optional<RingPlan> make(CallKind kind, std::uint64_t bytes, std::uint32_t rank,
                                      std::uint32_t ranks);

  std::uint64_t slices_out() const { return slices_out_; }
  std::uint64_t slices_in() const { return slices_in_; }
  // Returns how many slices the rank can send once it has received `received` slices.
  std::uint64_t ready(std::uint64_t received) const;
  std::uint64_t bytes_out(std::uint64_t slice) const { return slice_bytes(rank_, slice); }
  std::uint64_t bytes_in(std::uint64_t slice) const {
    return slice_bytes(rank_ + ranks_ - 1, slice);
  }
  std::uint64_t total_bytes_in() const;
  bool reduces() const { return reduces_; }

 private:
  std::uint64_t slice_bytes(std::uint32_t first_chunk, std::uint64_t slice) const;

  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 1;
  std::uint64_t elements_ = 0;
  std::uint64_t chunks_ = 1;  // chunks that the tensor is cut into
  std::uint64_t slices_per_chunk_ = 1;
  std::uint64_t own_slices_ = 0;  // slices to send before anything came
  std::uint64_t slices_out_ = 0;
  std::uint64_t slices_in_ = 0;
  bool reduces_ = false;
};

}  // namespace leeway::sim
