// A cipher that does not encrypt: the simulator's and the swarm's. Numbers, key phases and the
// replay window are the library's (src/security/seal); an observer of the network still sees the
// contents.
//
// Its proof is a checksum that begins with the key. It finds damage and wrong keys, and proves
// nothing against people.
#pragma once

#include <cstdint>

#include "seal/associations.h"

namespace leeway::sim {

seal::CipherMaker null_cipher();

// Halves that hide nothing, and that are the same in each run.
class NullExchange final : public seal::KeyExchange {
 public:
  explicit NullExchange(std::uint64_t seed) : seed_(seed) {}
  std::optional<Halves> make(const keys::Key& mixed) override;
  std::optional<keys::Key> agree(const keys::Key& private_half, const keys::Key& other) override;

 private:
  const std::uint64_t seed_;
  std::uint64_t made_ = 0;
};

// Returns the keys of a pair as both processes know them: from a number in place of an agreement.
seal::PairKeys null_keys(Rank self, Rank peer);

// Returns the contents of a datagram that was sealed so, or was not sealed.
ByteSpan contents_of(ByteSpan datagram);

}  // namespace leeway::sim
