// Sealing of a communicator with a secret (src/security/seal), with the keys of other ranks from
// the rendezvous.
#pragma once

#include <memory>
#include <span>

#include "keys/joined_keys.h"
#include "leeway/options.h"
#include "transport/sealed/sealed_transport.h"

namespace leeway::internal {

// Refuses options under which datagrams cannot be sealed, because with a secret no datagram may
// leave this process plain. The error's text says how to change the options.
Status check_sealing(const Options& options);

// Makes a sealing transport that has no peers yet.
std::unique_ptr<transport::SealedTransport> seal_transport(
    std::unique_ptr<DatagramTransport> transport, std::uint8_t lane);

// Makes the transport seal for these ranks, too. `slots`: their slots, by rank. Processes that have
// proved themselves before keep their keys, because keys belong to pairs of processes and to
// `lane`, and not to groups.
Status introduce(const keys::JoinedKeys& keys, Rank self, std::span<const Rank> slots,
                 std::uint8_t lane, transport::SealedTransport& sealed);

}  // namespace leeway::internal
