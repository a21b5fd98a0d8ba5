// The library's AES-128-GCM, which also records what all processes of a run sealed and opened. So
// it finds a nonce that two processes used, which no test of one process could find.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "seal/cipher.h"

namespace leeway::sim::adversary {

struct SealBook {
  // Record of the use of one key with its nonce vector. Each direction, lane and phase (period of
  // keys) has a key and a nonce vector of its own.
  struct Use {
    std::uint64_t sealed = 0;  // the largest number that was sealed
    std::set<std::uint64_t> opened;
  };
  std::map<std::array<std::byte, sizeof(seal::CipherKey) + sizeof(seal::NonceVector)>, Use> uses;
  std::string broken;  // text about the first rule that was broken
};

// Returns a maker of ciphers that record their use in `book`, which must outlive them.
seal::CipherMaker watched_cipher(SealBook& book);

}  // namespace leeway::sim::adversary
