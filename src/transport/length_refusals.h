// What a transport over a network knows of lengths that its system refuses (EMSGSIZE).
#pragma once

#include <cstddef>
#include <optional>

#include "leeway/types.h"

namespace leeway::transport {

struct LengthRefusal {
  Rank to = kNoRank;
  std::size_t bytes = 0;  // of a datagram that was too long, and is lost
};

class LengthRefusals {
 public:
  virtual ~LengthRefusals() = default;
  // The next peer of which a datagram was refused for its length since it was taken last; nothing:
  // there is none.
  virtual std::optional<LengthRefusal> take_refusal() = 0;
};

}  // namespace leeway::transport
