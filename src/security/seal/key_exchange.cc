#include "seal/key_exchange.h"

#include "keys/x25519.h"

namespace leeway::seal {
namespace {

class X25519 final : public KeyExchange {
 public:
  std::optional<Halves> make(const keys::Key& mixed) override {
    Halves halves;
    keys::Key random;
    keys::fill_randomly(random);
    halves.private_half = keys::extract(random, mixed);
    keys::wipe(random);
    const auto public_half = keys::x25519_public_half(halves.private_half);
    if (!public_half) return std::nullopt;
    halves.public_half = *public_half;
    return halves;
  }
  std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) override {
    return keys::x25519_agree(private_half, other);
  }
};

}  // namespace

KeyExchange& x25519() {
  static X25519 exchange;
  return exchange;
}

}  // namespace leeway::seal
