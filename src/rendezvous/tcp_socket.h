// What the system's TCP is told of a rendezvous's connections, and knows of them.
#pragma once

#include "leeway/types.h"

namespace leeway::rendezvous {

// Small messages leave at once, and lost ones again soon: the kernel doubles its time-out with each
// repeat, so that behind a line that lost eight in a row it comes back after 50 s; here after 2.
// `socket`: of TCP; what the kernel does not know is left out.
void speak_promptly(int socket);

// The least one lately, of the handshake at first: kernels answer each other, so a busy process at
// either end does not lengthen it. 0: not known, or `socket` is none.
Duration least_round_trip(int socket);

}  // namespace leeway::rendezvous
