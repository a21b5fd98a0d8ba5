// Leaves the group so that no peer is left waiting for this rank. Departure decides; this asks and
// tells peers.
#pragma once

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

class Leaving {
 public:
  explicit Leaving(EndpointState& state) : state_(state) {}

  // Parts now if the group can do without this rank: returns true if so. Else looks again later.
  bool wake(Instant now);
  // Parting began. Every peer is told until it answers, or once, if this rank was given up.
  void say_goodbye(Instant now, bool given_up);
  // Repeats the good-bye to the peer when that is due.
  void wake_farewell(Instant now, Rank peer);
  // Returns true once every peer has answered, has left itself, or did not answer in time.
  bool left() const;

 private:
  void tell_given_up(Rank peer);

  EndpointState& state_;
};

}  // namespace leeway::protocol
