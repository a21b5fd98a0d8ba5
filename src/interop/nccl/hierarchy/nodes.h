// Which ranks of a communicator share a host: the nodes of the hierarchy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::nccl {

// Where a rank is. Ranks tell each other.
struct Site {
  std::uint64_t host = 0;  // this_host()
  std::uint64_t gpu = 0;   // of the GPU's place on the PCI bus
};

// The host that this process counts for: `host_id` (NCCL_HOSTID), or, where that is empty, the
// host's name and the number of its last boot, as NVIDIA's library has it.
std::uint64_t this_host(const std::string& host_id);

// Nodes of equally many ranks each. They are numbered by their lowest rank, and the ranks of one by
// their order in the communicator.
struct Nodes {
  int count = 1;
  int each = 1;
  int node = 0;            // this rank's
  int local = 0;           // this rank's index in its node
  std::vector<int> ranks;  // those of node 0, then those of node 1 ...

  bool single() const { return count == 1; }
  int rank_of(int of_node, int of_local) const {
    return ranks[first_of(of_node) + static_cast<std::size_t>(of_local)];
  }
  // Where a rank of the communicator is.
  struct Place {
    int node = 0;
    int local = 0;
  };
  Place place_of(int rank) const;
  // The index of `rank` in this rank's node; -1: it is in another one.
  int local_of(int rank) const;
  // Ranks 0, 1, 2 ... fill node 0, then node 1 ...: the blocks of a node lie side by side.
  bool in_order() const;

 private:
  // In `ranks`.
  std::size_t first_of(int of_node) const {
    return static_cast<std::size_t>(of_node) * static_cast<std::size_t>(each);
  }
};

// kUnsupported: the nodes do not have equally many ranks, or two ranks of one share a GPU; the text
// is the end of a sentence that says so.
Result<Nodes> nodes_of(std::span<const Site> sites, int self);

}  // namespace leeway::nccl
