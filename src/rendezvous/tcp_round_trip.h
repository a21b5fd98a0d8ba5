// What the system's TCP knows of a connection's round trip.
#pragma once

#include "leeway/types.h"

namespace leeway::rendezvous {

// The least one lately, of the handshake at first: kernels answer each other, so a busy process at
// either end does not lengthen it. 0: not known, or `socket` is none.
Duration least_round_trip(int socket);

}  // namespace leeway::rendezvous
