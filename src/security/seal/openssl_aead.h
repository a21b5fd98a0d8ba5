// Both ciphers by OpenSSL, on every machine.
#pragma once

#include "seal/aead.h"

namespace leeway::seal {

std::unique_ptr<Cipher> make_openssl_aead(AeadKind kind, bool seals);

}  // namespace leeway::seal
