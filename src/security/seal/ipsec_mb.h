// AES-128-GCM by Intel's multi-buffer library (Debian's libipsec-mb-dev). It uses vector
// instructions for AES (VAES) and multiplication (VPCLMULQDQ) that OpenSSL 3.0 does not.
#pragma once

#include <string>

#include "seal/cipher.h"

namespace leeway::seal {

// Returns an empty string if this build is without the library, if this processor has no
// instructions for AES, or if the library's self-test failed. Then no cipher can be made.
std::string ipsec_mb_version();

// Makes a cipher that can seal as well as open.
std::unique_ptr<Cipher> make_ipsec_mb_aes_gcm();

}  // namespace leeway::seal
