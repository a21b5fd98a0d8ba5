// One rank of a ring: it receives from the previous rank and sends to the next one.
#pragma once

#include <functional>

#include "traffic.h"

namespace nccl_net_test {

class RingRank {
 public:
  explicit RingRank(const Net& net) : net_(net) {}

  // Connects, sends and receives messages of many sizes at once, and closes. `exchange` takes this
  // rank's handle and returns the next rank's. Returns true if all messages arrived intact.
  bool run(const std::function<Handle(const Handle& own)>& exchange);

 private:
  bool move(void* sender, void* receiver) const;

  const Net& net_;
};

}  // namespace nccl_net_test
