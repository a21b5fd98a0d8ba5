// What a communicator with a secret seals with (src/seal), from what the rendezvous told this
// process about the others.
#pragma once

#include <memory>
#include <span>

#include "keys/joined_keys.h"
#include "leeway/options.h"
#include "transport/sealed/sealed_transport.h"

namespace leeway::internal {

// With a secret nothing leaves this process plain: what cannot be sealed is refused, and the text
// says what to do.
Status check_sealing(const Options& options);

// Seals for nobody yet.
std::unique_ptr<transport::SealedTransport> seal_transport(
    std::unique_ptr<DatagramTransport> transport, std::uint8_t lane);

// From now on it seals for all of these; `slots`: by rank. Processes that have proved themselves
// keep their keys, which are of pairs of processes and of their `lane`, and not of groups.
Status introduce(const keys::JoinedKeys& keys, Rank self, std::span<const Rank> slots,
                 std::uint8_t lane, transport::SealedTransport& sealed);

}  // namespace leeway::internal
