// The library's AES-128-GCM, with a record of what all processes of a run sealed and opened. A test
// of one process cannot see all of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "seal/cipher.h"

namespace leeway::sim::adversary {

struct SealBook {
  // Use of one key and nonce vector: one direction, lane and phase.
  struct Use {
    std::uint64_t sealed = 0;  // the largest number that was sealed
    std::set<std::uint64_t> opened;
  };
  std::map<std::array<std::byte, sizeof(seal::CipherKey) + sizeof(seal::NonceVector)>, Use> uses;
  std::string broken;  // text about the first rule that was broken
};

// `book` outlives the ciphers.
seal::CipherMaker watched_cipher(SealBook& book);

}  // namespace leeway::sim::adversary
