#include "keys/process_key.h"

#include <openssl/evp.h>

namespace leeway::keys {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { ::EVP_PKEY_CTX_free(context); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;
using ContextPtr = std::unique_ptr<EVP_PKEY_CTX, Free>;

unsigned char* raw(Key& key) {
  return reinterpret_cast<unsigned char*>(key.data());
}
const unsigned char* raw(const Key& key) {
  return reinterpret_cast<const unsigned char*>(key.data());
}

}  // namespace

Result<std::shared_ptr<const ProcessKey>> ProcessKey::make() {
  std::shared_ptr<ProcessKey> made(new ProcessKey);
  fill_randomly(made->private_);
  const KeyPtr key(::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, raw(made->private_),
                                                  made->private_.size()));
  std::size_t bytes = made->public_.size();
  if (key == nullptr || ::EVP_PKEY_get_raw_public_key(key.get(), raw(made->public_), &bytes) != 1) {
    return Status::error(StatusCode::kUnsupported,
                         "this machine's OpenSSL makes no X25519 keys, which a secret needs");
  }
  return std::shared_ptr<const ProcessKey>(std::move(made));
}

Result<Key> ProcessKey::agree(const Key& other) const {
  const KeyPtr own(
      ::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, raw(private_), private_.size()));
  const KeyPtr theirs(
      ::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, raw(other), other.size()));
  const ContextPtr context(own == nullptr ? nullptr : ::EVP_PKEY_CTX_new(own.get(), nullptr));
  Key shared{};
  std::size_t bytes = shared.size();
  // OpenSSL refuses points of small order, whose result would be zeros.
  const bool done =
      context != nullptr && theirs != nullptr && ::EVP_PKEY_derive_init(context.get()) == 1 &&
      ::EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
      ::EVP_PKEY_derive(context.get(), raw(shared), &bytes) == 1 && bytes == shared.size();
  if (done) return shared;
  return Status::error(StatusCode::kMismatch, "a member's public key is none");
}

}  // namespace leeway::keys
