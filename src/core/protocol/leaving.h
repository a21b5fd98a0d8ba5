// Leaves the group so that no peer is left waiting for this rank. Departure decides when to leave;
// this class asks and tells peers.
#pragma once

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

class Leaving {
 public:
  explicit Leaving(EndpointState& state) : state_(state) {}

  // Returns true if the group can do without this rank, so that it may part now. Else arms a timer
  // to look again.
  bool wake(Instant now);
  // Begins parting: queues the good-bye to every peer. wake_farewell() repeats it until the peer
  // answers. With `given_up`, peers have given this rank up, and the good-bye is not repeated.
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
