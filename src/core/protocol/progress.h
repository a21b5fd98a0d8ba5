// Acts on a peer's progress: opens gates, and ends flows of operations that the peer has settled.
#pragma once

#include "protocol/settling.h"

namespace leeway::protocol {

class Progress {
 public:
  Progress(EndpointState& state, Settling& settling) : state_(state), settling_(settling) {}

  // WIRE 2.6: returns true if the peer can have opened all collectives below `opened_below`. The
  // number may exceed this rank's own, or the last one that the peer reported if that is higher, by
  // limits::kRoundsAheadMax.
  bool may_have_opened(Rank peer, std::uint32_t opened_below) const;
  // Notes that the peer has opened, and has settled, all collectives below these numbers.
  void on_collectives(Instant now, Rank peer, std::uint32_t opened_below,
                      std::uint32_t settled_below);
  // Call it when the peer has posted more receives.
  void on_receives(Instant now, Rank peer);

 private:
  void repeat_end_soon(Instant now, Round& round, Rank peer);

  EndpointState& state_;
  Settling& settling_;
};

}  // namespace leeway::protocol
