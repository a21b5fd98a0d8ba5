// A cipher that does not encrypt: the simulator's and the swarm's. Numbers, key phases and the
// replay window are the library's (src/seal); whoever looks at the network still sees what travels.
//
// Its proof is a checksum that begins with the key. It finds damage and wrong keys, and proves
// nothing against people.
#pragma once

#include "seal/associations.h"

namespace leeway::sim {

seal::CipherMaker null_cipher();

// As both processes know their pair: from a number in place of an agreement.
seal::PairKeys null_keys(Rank self, Rank peer);

// What a datagram says that was sealed so, or was not sealed.
ByteSpan contents_of(ByteSpan datagram);

}  // namespace leeway::sim
