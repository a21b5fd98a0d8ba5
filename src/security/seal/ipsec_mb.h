// AES-128-GCM by Intel's multi-buffer library (Debian's libipsec-mb-dev). It uses vector
// instructions for AES (VAES) and for multiplication (VPCLMULQDQ); OpenSSL 3.0 does not.
#pragma once

#include <string>

#include "seal/cipher.h"

namespace leeway::seal {

// Returns an empty string if no cipher can be made: this build is without the library, the
// processor has no instructions for AES, or the library's self-test failed.
std::string ipsec_mb_version();

// Makes a cipher that can seal as well as open.
std::unique_ptr<Cipher> make_ipsec_mb_aes_gcm();

}  // namespace leeway::seal
