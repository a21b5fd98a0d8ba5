// X25519 (RFC 7748) by OpenSSL, on halves of 32 bytes.
#pragma once

#include <optional>

#include "keys/derive.h"

namespace leeway::keys {

// Returns nullopt if this machine's OpenSSL cannot compute it.
std::optional<Key> x25519_public_half(const Key& private_half);
// Computes the key that only the owners of the two halves can compute. Returns nullopt if `other`
// is no public half.
std::optional<Key> x25519_agree(const Key& private_half, const Key& other);

}  // namespace leeway::keys
