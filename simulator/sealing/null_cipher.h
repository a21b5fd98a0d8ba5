// A cipher for simulations that does not encrypt, so that observers of the network see the
// contents. Numbers, key phases and the replay window are the library's (src/security/seal).
//
// The cipher's proof of authenticity is a checksum over key and bytes. The checksum detects damage
// and wrong keys, but a forger could compute it.
#pragma once

#include <cstdint>

#include "seal/associations.h"

namespace leeway::sim {

seal::CipherMaker null_cipher();

// A key exchange for simulations. The halves of keys that it makes are not secret, and are the same
// in each run.
class NullExchange final : public seal::KeyExchange {
 public:
  explicit NullExchange(std::uint64_t seed) : seed_(seed) {}
  std::optional<Halves> make(const keys::Key& mixed) override;
  std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) override;

 private:
  const std::uint64_t seed_;
  std::uint64_t made_ = 0;
};

// Returns the keys that two processes share, as `self` has them. The keys come from the ranks'
// numbers instead of a key agreement.
seal::PairKeys null_keys(Rank self, Rank peer);

// Returns the contents of a datagram that null_cipher() sealed. Returns any other datagram
// unchanged.
ByteSpan contents_of(ByteSpan datagram);

}  // namespace leeway::sim
