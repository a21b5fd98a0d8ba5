// Lengths that the system under a network transport refused (EMSGSIZE).
#pragma once

#include <cstddef>
#include <optional>

#include "leeway/types.h"

namespace leeway::transport {

struct LengthRefusal {
  Rank to = kNoRank;
  std::size_t bytes = 0;  // length of a datagram that was too long, and is lost
};

class LengthRefusals {
 public:
  virtual ~LengthRefusals() = default;
  // Returns the next peer of which a datagram was refused for its length since the call before, or
  // nullopt if there is none.
  virtual std::optional<LengthRefusal> take_refusal() = 0;
};

}  // namespace leeway::transport
