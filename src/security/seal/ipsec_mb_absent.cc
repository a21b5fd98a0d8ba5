// Stands in for ipsec_mb.cc in a build without IPsec-MB.
#include "base/contracts.h"
#include "seal/ipsec_mb.h"

namespace leeway::seal {

std::string ipsec_mb_version() {
  return {};
}

std::unique_ptr<Cipher> make_ipsec_mb_aes_gcm() {
  LEEWAY_ASSERT(!"this build is without IPsec-MB");
  return nullptr;
}

}  // namespace leeway::seal
