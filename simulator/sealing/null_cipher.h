// A cipher that does not encrypt: the simulator's and the swarm's. Numbers, key phases and the
// replay window are the library's (src/security/seal); an observer of the network still sees the
// contents.
//
// Its proof is a checksum over the key and the bytes. It detects damage and wrong keys, but no
// forger.
#pragma once

#include <cstdint>

#include "seal/associations.h"

namespace leeway::sim {

seal::CipherMaker null_cipher();

// A key exchange whose halves are not secret, and are the same in each run.
class NullExchange final : public seal::KeyExchange {
 public:
  explicit NullExchange(std::uint64_t seed) : seed_(seed) {}
  std::optional<Halves> make(const keys::Key& mixed) override;
  std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) override;

 private:
  const std::uint64_t seed_;
  std::uint64_t made_ = 0;
};

// Returns the keys of a pair as both processes know them. They come from a number, not from a key
// agreement.
seal::PairKeys null_keys(Rank self, Rank peer);

// Returns the contents of a datagram that this cipher sealed, or that was not sealed.
ByteSpan contents_of(ByteSpan datagram);

}  // namespace leeway::sim
