// The nonce of a datagram (cipher.h).
#pragma once

#include "seal/cipher.h"

namespace leeway::seal {

inline NonceVector nonce_of(const NonceVector& vector, std::uint64_t number) {
  NonceVector nonce = vector;
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(number >> (8 * i) & 0xFF);
  return nonce;
}

}  // namespace leeway::seal
