// UCX beside the transport that carries the datagrams, for calls that are exact (WIRE 7.10).
#pragma once

#include "communicator/core.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/log.h"
#include "rendezvous/transport_choice.h"

namespace leeway::internal {

// Gives exact calls the group's exact lane if, on every rank, three things hold there: every other
// rank is reached by more than TCP; every other rank's datagrams wake this rank from its sleep; and
// this rank hears every other. All ranks agree by two votes over the carrier that is there already.
// Only a vote that fails is an error. The log says why the lane is not used. Takes a few
// milliseconds where all is well, and at most twice `timeout` and a little more.
Status open_exact_lane(internal::CommunicatorCore& core, rendezvous::TransportChoice& choice,
                       const rendezvous::Group& group, Duration timeout, rendezvous::Log& log);

}  // namespace leeway::internal
