// X25519 (RFC 7748) by OpenSSL, with private and public halves of 32 bytes.
#pragma once

#include <optional>

#include "keys/derive.h"

namespace leeway::keys {

// Returns nullopt if this machine's OpenSSL cannot compute it.
std::optional<Key> x25519_public_half(const Key& private_half);
// Returns the key that only the owners of the two private halves can compute; nullopt if `other` is
// no public half.
std::optional<Key> x25519_agree(const Key& private_half, const Key& other);

}  // namespace leeway::keys
