// Keys out of the secret that two processes share (WIRE 8.4): one chain for each direction and
// lane, whose links are the key phases.
#pragma once

#include <cstdint>

#include "keys/derive.h"
#include "seal/cipher.h"

namespace leeway::seal {

// How one process speaks to another.
struct Direction {
  keys::Key secret{};     // of phase 0
  std::uint32_t tag = 0;  // which names the sender to the receiver
};

struct PairKeys {
  Direction outbound;
  Direction inbound;
  bool leads = false;  // this process begins key phases; the other one follows
};

// One of two processes, as both know it.
struct Party {
  keys::Key public_key{};
  std::uint32_t tag_base = 0;  // its high 16 bits are those of all tags that it receives
};

// `agreed`: what only these two can compute (X25519). `shared`: derived from the secret of their
// group, so that an outsider who breaks one of the two has nothing. `meeting`: tells the meeting
// from all others, so that keys of two meetings differ even where the rest is a copy. `suite`:
// which cipher (aead.h), so that two who disagree about it understand nothing of each other.
PairKeys derive_pair(const keys::Key& agreed, const keys::Key& shared, const keys::Key& meeting,
                     const Party& self, const Party& peer, std::uint8_t lane, std::uint8_t suite);

// The link of the chain behind `secret`.
keys::Key next_phase(const keys::Key& secret);

// Hands a cipher the key of the phase.
void key_cipher(const keys::Key& secret, Cipher& cipher);

}  // namespace leeway::seal
