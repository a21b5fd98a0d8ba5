// Derives keys from the secrets that two processes share (WIRE 8.4): a chain of roots, one for each
// key phase, and from each root one secret for each direction and lane.
#pragma once

#include <cstdint>

#include "keys/derive.h"
#include "seal/cipher.h"

namespace leeway::seal {

// The keys between two processes, as one of them holds them.
struct PairKeys {
  ~PairKeys() { keys::wipe(root); }

  keys::Key root{};  // root of the latest phase; of phase 0 before next_phase()
  keys::Key own{};   // public halves of the two processes
  keys::Key peers{};
  std::uint8_t lane = 0;
  std::uint8_t suite = 0;
  std::uint32_t outbound_tag = 0;  // names this process to the peer
  std::uint32_t inbound_tag = 0;
  bool leads = false;  // this process begins key phases; the other one follows
};

// What both processes of a pair know of one of the two.
struct Party {
  keys::Key public_key{};
  std::uint32_t tag_base = 0;  // its high 16 bits are those of all tags that it receives
};

// Derives the first keys of a pair. `agreed`: the key that only these two can compute (X25519).
// `shared`: from the secret of their group. An outsider must break both. `meeting`: makes keys of
// two meetings differ even where all else is a copy. `suite`: the cipher (aead.h), so processes
// that disagree about it cannot open each other's datagrams.
PairKeys derive_pair(const keys::Key& agreed, const keys::Key& shared, const keys::Key& meeting,
                     const Party& self, const Party& peer, std::uint8_t lane, std::uint8_t suite);

// Replaces the root by that of the next phase. `agreed`: result of a key exchange with halves made
// only for this phase.
void next_phase(PairKeys& keys, const keys::Key& agreed);

// Sets a cipher's key of the phase: for sealing this process's datagrams, or for opening the
// peer's.
void key_cipher(const PairKeys& keys, bool seals, Cipher& cipher);

}  // namespace leeway::seal
