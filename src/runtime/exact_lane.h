// UCX beside the transport that carries the datagrams, for calls that are exact (WIRE 7.10).
#pragma once

#include "runtime/bootstrap.h"
#include "runtime/communicator_core.h"
#include "runtime/log.h"
#include "runtime/transport_choice.h"

namespace leeway::runtime {

// Gives exact calls the group's exact lane if, on every rank, three things hold there: every other
// rank is reached by more than TCP; every other rank's datagrams wake this rank from its sleep; and
// this rank hears every other. All ranks agree by two votes over the carrier that is there already.
// Only a vote that fails is an error. The log says why the lane is not used. Takes a few
// milliseconds where all is well, and at most twice `timeout` and a little more.
Status open_exact_lane(internal::CommunicatorCore& core, TransportChoice& choice,
                       const Group& group, Duration timeout, Log& log);

}  // namespace leeway::runtime
