// Proof at the end of a message that a member puts into a store. A stranger without a secret of the
// job can neither make such a message nor change one (WIRE 7.20).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// Returns one proof for each secret, in their order. `place` is the key in the store, which names
// the group, the meeting and the rank, so that a message proves nothing under another key.
std::vector<std::byte> prove(const Secrets& secrets, const std::string& place, ByteSpan message);

// Returns whether a process with the secrets of these ids made the proof. Both sides use the secret
// that they share (shared_secret()).
bool is_proved(const Secrets& own, const std::vector<std::uint64_t>& theirs,
               const std::string& place, ByteSpan message, ByteSpan proof);

}  // namespace leeway::keys
