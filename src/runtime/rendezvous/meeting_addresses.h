// Corrects the addresses of ranks by what their connections to rank 0 show.
//
// Before the meeting a rank guesses its address. The guess is the one by which the system would
// reach rank 0's name, or other networks if that name is this machine's own. It is wrong if the
// name also has an address that does not answer, or if other ranks come by another interface. An
// open connection proves the addresses of both its ends. A rank that was told its address
// (Options::bind_address) keeps it.
#pragma once

#include <functional>
#include <vector>

#include "control.pb.h"
#include "rendezvous/group.h"
#include "rendezvous/tcp_client.h"

namespace leeway::rendezvous {

// Puts the addresses of this rank's connection to rank 0 into its Hello (WIRE 7.21).
void tell_addresses(const LocalConfiguration& local, const ConnectionEnds& ends,
                    control::Hello& hello);

// Sets rank 0's data address to the one at which the first rank of another host reached rank 0, if
// that is an address of this host (`is_own`). Ranks on rank 0's own host get the same address.
void settle_addresses(LocalConfiguration& root, std::vector<control::Hello>& others,
                      const std::function<bool(const asio::ip::address&)>& is_own);

}  // namespace leeway::rendezvous
