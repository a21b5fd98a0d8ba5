// TCP options of a rendezvous's connections, and the round trip that TCP measured.
#pragma once

#include "leeway/types.h"

namespace leeway::rendezvous {

// Makes TCP send small messages at once and repeat lost ones soon. The kernel doubles its time-out
// with each repeat, so after eight losses in a row the next repeat would come after 50 s. Here it
// comes after 2 s. `socket` is a TCP socket. Options that the kernel does not know are left out.
void speak_promptly(int socket);

// Returns the shortest recent round trip, at first that of the handshake. Kernels acknowledge
// without the processes, so a busy process does not lengthen the round trip. Returns 0 if it is not
// known, or if `socket` is no socket.
Duration least_round_trip(int socket);

}  // namespace leeway::rendezvous
