// Interface of ciphers, which seal or open datagrams under one key. The library has AES-128-GCM and
// ChaCha20-Poly1305 (aead.h). The simulator and its swarm have one that does not encrypt.
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

// Room for the longest key of any cipher. A cipher with shorter keys uses the first bytes.
using CipherKey = std::array<std::byte, 32>;

// Datagram n has this vector as its nonce, after n (big-endian) was combined by exclusive or with
// the last 8 bytes.
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

  // Sets the key. An object is used only for sealing or only for opening.
  virtual void set_key(const CipherKey& key, const NonceVector& vector) = 0;

  // Encrypts the pieces into `out`. `out` is a whole datagram: the header, which must be there
  // already, as many bytes as the pieces have, and the proof. Allocates nothing. Use each number
  // once under a key.
  virtual void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) = 0;

  // Opens in place the bytes between header and proof. Returns false if the proof is wrong; the
  // bytes are destroyed then.
  virtual bool open(std::uint64_t number, MutableByteSpan datagram) = 0;
};

using CipherMaker = std::function<std::unique_ptr<Cipher>(bool seals)>;

}  // namespace leeway::seal
