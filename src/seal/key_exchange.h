// What makes each key phase independent of all that was held before: two fresh halves, of which
// only the public ones travel. The library's is X25519. The simulator brings one that hides
// nothing.
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

  // New ones. `mixed` is the pair's own secret: two pairs have other halves even where the random
  // generator repeats itself. Nothing: none can be had now.
  virtual std::optional<Halves> make(const keys::Key& mixed) = 0;
  // What the owners of both halves compute. Nothing: `other` is no public half.
  virtual std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) = 0;
};

// By OpenSSL. It has no state.
KeyExchange& x25519();

}  // namespace leeway::seal
