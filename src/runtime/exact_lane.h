// UCX beside the transport that carries the datagrams, for calls that are exact (WIRE 7.10).
#pragma once

#include "runtime/bootstrap.h"
#include "runtime/communicator_core.h"
#include "runtime/log.h"
#include "runtime/transport_choice.h"

namespace leeway::runtime {

// Gives exact calls the group's exact lane when every rank reaches every other by more than TCP
// there, and has heard it. Each rank finds out for itself, and all agree by two votes over the
// carrier that is there already; only a vote that fails is an error. Takes at most a little more
// than `timeout`.
Status open_exact_lane(internal::CommunicatorCore& core, TransportChoice& choice,
                       const Group& group, Duration timeout, Log& log);

}  // namespace leeway::runtime
