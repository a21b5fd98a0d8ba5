// One rank of a ring: it receives from the rank before it, and sends to the one after it.
#pragma once

#include <functional>

#include "traffic.h"

namespace nccl_net_test {

class RingRank {
 public:
  explicit RingRank(const Net& net) : net_(net) {}

  // Connects, moves messages of many sizes both ways at once, and closes. `exchange` takes this
  // rank's handle and returns that of the next rank. Returns true if all messages arrived as they
  // were sent.
  bool run(const std::function<Handle(const Handle& own)>& exchange);

 private:
  bool move(void* sender, void* receiver) const;

  const Net& net_;
};

}  // namespace nccl_net_test
