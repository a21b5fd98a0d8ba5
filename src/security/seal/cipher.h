// Interface of ciphers, which seal or open datagrams under one key. The library has AES-128-GCM and
// ChaCha20-Poly1305 (aead.h). The simulator and its swarm bring a cipher that does not encrypt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "leeway/transport.h"
#include "leeway/types.h"
#include "seal/packet.h"

namespace leeway::seal {

// A key as long as the longest that a cipher needs. A cipher with shorter keys uses the first
// bytes.
using CipherKey = std::array<std::byte, 32>;

// The nonce of datagram n is the vector, combined by exclusive or with n (big-endian) in its last 8
// bytes.
using NonceVector = std::array<std::byte, 12>;

inline NonceVector nonce_of(const NonceVector& vector, std::uint64_t number) {
  NonceVector nonce = vector;
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(number >> (8 * i) & 0xFF);
  return nonce;
}

class Cipher {
 public:
  Cipher() = default;
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;
  virtual ~Cipher() = default;

  // An object is used either only for sealing or only for opening.
  virtual void set_key(const CipherKey& key, const NonceVector& vector) = 0;

  // Encrypts the pieces into `out`, a whole datagram: its header, which is there already, as many
  // bytes as the pieces have, and the proof. Allocates nothing. A number is used once for each key.
  virtual void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) = 0;

  // Opens a datagram in place: the bytes behind the header, without the proof. Returns false if the
  // proof is wrong; then these bytes are destroyed.
  virtual bool open(std::uint64_t number, MutableByteSpan datagram) = 0;
};

using CipherMaker = std::function<std::unique_ptr<Cipher>(bool seals)>;

}  // namespace leeway::seal
