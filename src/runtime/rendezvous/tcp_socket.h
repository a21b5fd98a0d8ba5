// Settings of the system's TCP for a rendezvous's connections, and what it measured of them.
#pragma once

#include "leeway/types.h"

namespace leeway::rendezvous {

// Makes small messages leave at once, and lost ones again soon. The kernel doubles its time-out
// with each repeat. Behind a link that lost eight in a row it would come back after 50 s, here
// after 2 s. `socket` is a TCP socket. Options that the kernel does not know are left out.
void speak_promptly(int socket);

// The shortest of the recent round trips, at first that of the handshake. Kernels answer each
// other, so a busy process at either end does not lengthen it. 0 if not known, or if `socket` is
// none.
Duration least_round_trip(int socket);

}  // namespace leeway::rendezvous
