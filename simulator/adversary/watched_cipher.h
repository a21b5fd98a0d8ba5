// The library's AES-128-GCM, and a book of all that was sealed and opened in one run, which no test
// of a single process sees.
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
    std::uint64_t sealed = 0;  // the largest number
    std::set<std::uint64_t> opened;
  };
  std::map<std::array<std::byte, sizeof(seal::CipherKey) + sizeof(seal::NonceVector)>, Use> uses;
  std::string broken;  // the first rule that was, in words
};

// `book` outlives the ciphers.
seal::CipherMaker watched_cipher(SealBook& book);

}  // namespace leeway::sim::adversary
