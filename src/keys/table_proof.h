// What stands behind a message that a member puts into a store: who holds no secret of the job can
// neither make such a message nor change one (WIRE 7.20).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// One proof for each secret, in their order. `place`: the key in the store, which names the group,
// the meeting and the rank, so that a message proves nothing elsewhere.
std::vector<std::byte> prove(const Secrets& secrets, const std::string& place, ByteSpan message);

// Whether a process with the secrets of these ids made the proof. Both sides look at the secret
// that they share (shared_secret()).
bool is_proved(const Secrets& own, const std::vector<std::uint64_t>& theirs,
               const std::string& place, ByteSpan message, ByteSpan proof);

}  // namespace leeway::keys
