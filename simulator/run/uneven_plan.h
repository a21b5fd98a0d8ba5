// Draws the block lengths of uneven collectives from the run's seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenario.pb.h"

namespace leeway::sim {

class UnevenPlan {
 public:
  // Plans blocks for tensors of `elements` elements. The scenario must be valid.
  UnevenPlan(const scenario::Scenario& scenario, std::uint64_t seed, std::size_t elements);

  // Returns the lengths of the blocks of this round's call, in elements, by sender and then by
  // receiver. A rank's block for itself is included. The vector is empty if blocks are even. All
  // blocks of one rank fit into a tensor together.
  std::vector<std::size_t> lengths(std::uint32_t round) const;

 private:
  scenario::Operation::Kind kind_;
  bool uneven_;
  std::uint64_t seed_;
  std::uint32_t ranks_;
  std::size_t longest_;
};

}  // namespace leeway::sim
