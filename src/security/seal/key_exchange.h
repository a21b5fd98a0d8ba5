// Interface of the key exchange that makes each key phase independent of all earlier secrets. Both
// sides make fresh halves, of which only the public ones travel. The library's exchange is X25519.
// The simulator brings one that hides nothing.
#pragma once

#include <optional>

#include "keys/derive.h"

namespace leeway::seal {

class KeyExchange {
 public:
  struct Halves {
    ~Halves() { keys::wipe(private_half); }
    keys::Key private_half{};
    keys::Key public_half{};
  };

  virtual ~KeyExchange() = default;

  // Makes new halves. `mixed` is the pair's own secret: two pairs get different halves even if the
  // random generator repeats itself. Returns nullopt if none can be had now.
  virtual std::optional<Halves> make(const keys::Key& mixed) = 0;
  // Computes the key that only the owners of both halves can compute. Returns nullopt if `other` is
  // no public half.
  virtual std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) = 0;
};

// The exchange by OpenSSL. It has no state.
KeyExchange& x25519();

}  // namespace leeway::seal
