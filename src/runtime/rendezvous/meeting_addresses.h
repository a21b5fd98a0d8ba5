// Where ranks are reached, as their meeting shows it.
//
// Before it, a rank guesses its address: the one by which the system would reach rank 0's name,
// which has several, say, of which one family is dead; or towards other networks, if the name is
// this machine's own (Debian's 127.0.1.1), though the others may come by another interface. A
// connection that stands proves two addresses. Ranks that were told their address
// (Options::bind_address) keep it.
#pragma once

#include <functional>
#include <vector>

#include "control.pb.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/tcp_client.h"

namespace leeway::rendezvous {

// Fills in what a Hello says about this rank's connection to rank 0 (WIRE 7.21).
void tell_addresses(const LocalConfiguration& local, const ConnectionEnds& ends,
                    control::Hello& hello);

// Rank 0 is where the first rank of another host has reached it, if that is an address of this host
// (`is_own`), and ranks that came by an address of their own host are there, too.
void settle_addresses(LocalConfiguration& root, std::vector<control::Hello>& others,
                      const std::function<bool(const asio::ip::address&)>& is_own);

}  // namespace leeway::rendezvous
