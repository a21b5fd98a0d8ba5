// The addresses at which ranks are reached, as their meeting shows them.
//
// Before the meeting a rank guesses its address: the one by which the system would reach rank 0's
// name, or other networks if that name is this machine's own. Such a guess may be wrong, because a
// name may have a dead address, and others may come by another interface. A connection that stands
// proves the addresses of its ends. Ranks that were told their address (Options::bind_address) keep
// it.
#pragma once

#include <functional>
#include <vector>

#include "control.pb.h"
#include "rendezvous/group.h"
#include "rendezvous/tcp_client.h"

namespace leeway::rendezvous {

// Fills in what a Hello says about this rank's connection to rank 0 (WIRE 7.21).
void tell_addresses(const LocalConfiguration& local, const ConnectionEnds& ends,
                    control::Hello& hello);

// Sets rank 0's data address to the one by which the first rank of another host has reached it, if
// that is an address of this host (`is_own`). Ranks on rank 0's own host get the same address.
void settle_addresses(LocalConfiguration& root, std::vector<control::Hello>& others,
                      const std::function<bool(const asio::ip::address&)>& is_own);

}  // namespace leeway::rendezvous
