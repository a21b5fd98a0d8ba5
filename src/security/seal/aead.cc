#include "seal/aead.h"

#include <openssl/crypto.h>

#include "seal/ipsec_mb.h"

namespace leeway::seal {

bool prefers_chacha() {
#if defined(__x86_64__)
  return !__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul");
#else
  return false;
#endif
}

std::unique_ptr<Cipher> make_aead(AeadKind kind, bool seals) {
  if (kind == AeadKind::aes_128_gcm && !ipsec_mb_version().empty()) return make_ipsec_mb_aes_gcm();
  return make_openssl_aead(kind, seals);
}

std::string preferred_aead() {
  const std::string openssl = std::string("OpenSSL ") + OpenSSL_version(OPENSSL_VERSION_STRING);
  if (prefers_chacha()) return "ChaCha20-Poly1305 by " + openssl;
  const std::string ipsec_mb = ipsec_mb_version();
  return "AES-128-GCM by " + (ipsec_mb.empty() ? openssl : "IPsec-MB " + ipsec_mb);
}

}  // namespace leeway::seal
