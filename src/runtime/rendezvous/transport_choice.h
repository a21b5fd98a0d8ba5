// Rank 0's choice of a transport, without sockets: which one carries the datagrams of all ranks.
#pragma once

#include <vector>

#include "control.pb.h"
#include "leeway/status.h"
#include "rendezvous/group.h"

namespace leeway::rendezvous {

// Checks that a rank asks for the same transport and the same multicast as rank 0. The error names
// both sides.
Status check_wishes(const control::Hello& hello, const LocalConfiguration& root);

// Chooses the transport for all ranks, which all ask for `wanted`. `udp` has the UDP addresses of
// all ranks; `offers` is by rank. Automatic means verbs if every rank has it, else UDP. Returns
// kUnsupported, and names the rank, if a rank lacks a transport that was asked for by name.
Result<GroupTransport> choose_transport(TransportKind wanted, const GroupTransport& udp,
                                        const std::vector<std::vector<TransportOffer>>& offers);

// Returns the multicast group of a communicator, in the scope of an organisation. It depends on the
// epoch. Its UDP port is below those that systems choose for sockets by themselves.
Group::Multicast multicast_of(std::uint32_t epoch, bool v4);

void put_offers(const std::vector<TransportOffer>& offers, control::Hello& hello);
std::vector<TransportOffer> offers_of(const control::Hello& hello);

}  // namespace leeway::rendezvous
