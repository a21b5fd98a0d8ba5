// The ciphers: AES-128-GCM and ChaCha20-Poly1305, with nonces of 12 bytes and authentication tags
// ("proofs") of 16 bytes. OpenSSL and IPsec-MB compute the same bytes.
#pragma once

#include <string>

#include "seal/cipher.h"

namespace leeway::seal {

enum class AeadKind : std::uint8_t { aes_128_gcm = 0, chacha20_poly1305 = 1 };

// Returns whether this processor lacks instructions for AES, so that ChaCha20-Poly1305 is several
// times as fast.
bool prefers_chacha();

// Makes a cipher that OpenSSL computes, which has both kinds on every machine.
std::unique_ptr<Cipher> make_openssl_aead(AeadKind kind, bool seals);

// Makes a cipher that IPsec-MB computes, or OpenSSL if that library is absent or lacks this kind.
// Allocates here; sealing and opening allocate nothing.
std::unique_ptr<Cipher> make_aead(AeadKind kind, bool seals);
inline CipherMaker aead_maker(AeadKind kind) {
  return [kind](bool seals) { return make_aead(kind, seals); };
}

// Returns text for people: the cipher that this machine prefers, and the library that computes it.
std::string preferred_aead();

}  // namespace leeway::seal
