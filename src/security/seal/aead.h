// The library's ciphers: AES-128-GCM and ChaCha20-Poly1305, both with nonces of 12 bytes and
// authentication tags ("proofs") of 16 bytes. All libraries compute the same bytes.
#pragma once

#include <string>

#include "seal/cipher.h"

namespace leeway::seal {

enum class AeadKind : std::uint8_t { aes_128_gcm = 0, chacha20_poly1305 = 1 };

// Returns whether this processor has no instructions for AES. ChaCha20-Poly1305 is several times as
// fast there.
bool prefers_chacha();

// Makes a cipher that OpenSSL computes. It has both on every machine.
std::unique_ptr<Cipher> make_openssl_aead(AeadKind kind, bool seals);

// Makes a cipher that IPsec-MB computes, if that library is there and has this cipher, else
// OpenSSL. The cipher's contexts are made here, once; sealing and opening allocate nothing.
std::unique_ptr<Cipher> make_aead(AeadKind kind, bool seals);
inline CipherMaker aead_maker(AeadKind kind) {
  return [kind](bool seals) { return make_aead(kind, seals); };
}

// Returns a text for people: the cipher that this machine prefers, and the library that computes
// it.
std::string preferred_aead();

}  // namespace leeway::seal
