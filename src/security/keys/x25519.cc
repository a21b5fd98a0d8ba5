#include "keys/x25519.h"

#include <openssl/evp.h>

#include <memory>

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

KeyPtr key_of(const Key& private_half) {
  return KeyPtr(::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, raw(private_half),
                                               private_half.size()));
}

}  // namespace

std::optional<Key> x25519_public_half(const Key& private_half) {
  const KeyPtr key = key_of(private_half);
  Key half{};
  std::size_t bytes = half.size();
  if (key == nullptr || ::EVP_PKEY_get_raw_public_key(key.get(), raw(half), &bytes) != 1)
    return std::nullopt;
  return half;
}

std::optional<Key> x25519_agree(const Key& private_half, const Key& other) {
  const KeyPtr own = key_of(private_half);
  const KeyPtr theirs(
      ::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, raw(other), other.size()));
  const ContextPtr context(own == nullptr ? nullptr : ::EVP_PKEY_CTX_new(own.get(), nullptr));
  std::optional<Key> shared(std::in_place);
  std::size_t bytes = shared->size();
  // OpenSSL refuses points of small order, whose result would be zeros.
  const bool done =
      context != nullptr && theirs != nullptr && ::EVP_PKEY_derive_init(context.get()) == 1 &&
      ::EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
      ::EVP_PKEY_derive(context.get(), raw(*shared), &bytes) == 1 && bytes == shared->size();
  if (!done) shared.reset();
  return shared;
}

}  // namespace leeway::keys
