// Proof at the end of a message that a member puts into a store. Without a secret of the job,
// nobody can make such a message or change one (WIRE 7.20).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// Returns a proof by each secret, in their order. `place`: the message's key in the store, with
// group, meeting and rank. A copy of the message under another key proves nothing.
std::vector<std::byte> prove(const Secrets& secrets, const std::string& place, ByteSpan message);

// Returns whether a process that holds the secrets with ids `theirs` made the proof. Only the proof
// by the secret that both sides share is checked (shared_secret()).
bool is_proved(const Secrets& own, const std::vector<std::uint64_t>& theirs,
               const std::string& place, ByteSpan message, ByteSpan proof);

}  // namespace leeway::keys
