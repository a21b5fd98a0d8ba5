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

// All ranks ask for `wanted`; `udp` leads to all of them; `offers` is by rank. Automatic means
// verbs if every rank has it, else UDP. A rank that lacks a transport that is asked for by name is
// an error (kUnsupported) that names it.
Result<GroupTransport> choose_transport(TransportKind wanted, const GroupTransport& udp,
                                        const std::vector<std::vector<TransportOffer>>& offers);

// The multicast group of a communicator. Its scope is one organisation. Other epochs have other
// groups. Its UDP ports are below those that systems choose for sockets by themselves.
Group::Multicast multicast_of(std::uint32_t epoch, bool v4);

void put_offers(const std::vector<TransportOffer>& offers, control::Hello& hello);
std::vector<TransportOffer> offers_of(const control::Hello& hello);

}  // namespace leeway::rendezvous
