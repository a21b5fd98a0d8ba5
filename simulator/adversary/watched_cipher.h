// The library's AES-128-GCM, with a record of all that was sealed and opened in one run. A test of
// a single process cannot see all of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "seal/cipher.h"

namespace leeway::sim::adversary {

struct SealBook {
  // A key of one direction, lane and phase, with its nonces.
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
