// One rank of a ring: receives from the rank before it, and sends to the one behind it.
#pragma once

#include <functional>

#include "traffic.h"

namespace nccl_net_test {

class RingRank {
 public:
  explicit RingRank(const Net& net) : net_(net) {}

  // `exchange` is handed this rank's handle, and gives that of the next one. Connects, moves
  // messages of many sizes both ways at once, and closes. Whether all arrived as it was sent.
  bool run(const std::function<Handle(const Handle& own)>& exchange);

 private:
  bool move(void* sender, void* receiver) const;

  const Net& net_;
};

}  // namespace nccl_net_test
