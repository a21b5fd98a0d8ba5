// Interface of the key exchange that makes each key phase independent of all earlier secrets. Both
// sides make fresh private and public halves, and send the public ones. The library's exchange is
// X25519; the simulator has one that hides nothing.
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

  // Makes new halves. `mixed`: a secret of the pair, so that pairs get different halves even if the
  // random generator repeats itself. Returns nullopt if none can be made now.
  virtual std::optional<Halves> make(const keys::Key& mixed) = 0;
  // Returns the key that only the owners of both private halves can compute; nullopt if `other` is
  // no public half.
  virtual std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) = 0;
};

// Returns the exchange that OpenSSL computes. It has no state.
KeyExchange& x25519();

}  // namespace leeway::seal
