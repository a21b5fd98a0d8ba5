// Forward secrecy: an attacker who recorded everything, and later reads the memory of both
// processes, must not be able to open what was sealed before the present phase (WIRE 8.5).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "seal/aead.h"
#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// Bytes that are stored masked. So a search of the memory for these bytes does not find this copy.
class Masked {
 public:
  explicit Masked(ByteSpan bytes) : bytes_(bytes.begin(), bytes.end()) {
    for (std::byte& byte : bytes_) byte ^= kMask;
  }
  // Returns true if the bytes lie in writable memory of this process outside its stacks.
  bool is_in_memory() const {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t begin = 0;
      std::uintptr_t end = 0;
      char dash = 0;
      std::string rights;
      std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
      const bool is_stack = line.find("[stack") != std::string::npos;
      if (rights.starts_with("rw") && !is_stack && is_in(begin, end)) return true;
    }
    return false;
  }

 private:
  static constexpr std::byte kMask{0x5A};

  bool is_in(std::uintptr_t begin, std::uintptr_t end) const {
    const auto* const last = reinterpret_cast<const std::byte*>(end) - bytes_.size();
    const int first = std::to_integer<int>(bytes_[0] ^ kMask);
    for (const auto* at = reinterpret_cast<const std::byte*>(begin); at < last; ++at) {
      at = static_cast<const std::byte*>(
          std::memchr(at, first, static_cast<std::size_t>(last - at)));
      if (at == nullptr) return false;
      std::size_t same = 1;
      while (same < bytes_.size() && at[same] == (bytes_[same] ^ kMask)) ++same;
      if (same == bytes_.size()) return true;
    }
    return false;
  }

  Bytes bytes_;
};

// A key exchange by X25519 that records its secrets, and in `roots` the `mixed` arguments.
class RecordedExchange final : public KeyExchange {
 public:
  std::optional<Halves> make(const keys::Key& mixed) override {
    roots.emplace_back(mixed);
    auto halves = x25519().make(mixed);
    secrets.emplace_back(halves->private_half);
    return halves;
  }
  std::optional<keys::Key> agree(const keys::Key& own, const keys::Key& other) override {
    auto agreed = x25519().agree(own, other);
    secrets.emplace_back(*agreed);
    return agreed;
  }

  std::vector<Masked> roots;
  std::vector<Masked> secrets;
};

class RecordedCipher final : public Cipher {
 public:
  RecordedCipher(std::unique_ptr<Cipher> cipher, std::vector<Masked>& keys)
      : cipher_(std::move(cipher)), keys_(keys) {}
  void set_key(const CipherKey& key, const NonceVector& vector) override {
    keys_.emplace_back(ByteSpan(key).first(16));
    cipher_->set_key(key, vector);
  }
  void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) override {
    cipher_->seal(number, pieces, out);
  }
  bool open(std::uint64_t number, MutableByteSpan datagram) override {
    return cipher_->open(number, datagram);
  }

 private:
  std::unique_ptr<Cipher> cipher_;
  std::vector<Masked>& keys_;
};

class ForwardSecrecy : public ::testing::TestWithParam<bool> {};

// Searches the memory ten seconds after the last phase began, with nothing sent since. Only keys of
// the last phase may be found.
TEST_P(ForwardSecrecy, NothingOfEarlierPhasesIsLeftInMemory) {
  const bool by_openssl = GetParam();
  RecordedExchange exchange;
  std::vector<Masked> ciphers;
  const CipherMaker maker = [&](bool seals) {
    auto cipher = by_openssl ? make_openssl_aead(AeadKind::aes_128_gcm, seals)
                             : make_aead(AeadKind::aes_128_gcm, seals);
    return std::make_unique<RecordedCipher>(std::move(cipher), ciphers);
  };
  PairOfTwo pair({}, maker, exchange);
  for (int phase = 0; phase < 4; ++phase) {
    ASSERT_TRUE(pair.pass(1) && pair.pass(0));
    pair.pass_time(120s);
  }
  ASSERT_EQ(pair.end(0).receiving_phase(), 4u);
  pair.pass_time(10s);
  constexpr std::size_t kOfAPhase = 4;  // both ends, both directions
  ASSERT_EQ(ciphers.size(), 5 * kOfAPhase);
  for (std::size_t i = 0; i < ciphers.size(); ++i)
    EXPECT_EQ(ciphers[i].is_in_memory(), i >= 4 * kOfAPhase) << i;
  EXPECT_EQ(exchange.roots.size(), 8u);
  for (const Masked& root : exchange.roots) EXPECT_FALSE(root.is_in_memory());
  EXPECT_EQ(exchange.secrets.size(), 16u);
  for (const Masked& secret : exchange.secrets) EXPECT_FALSE(secret.is_in_memory());
}

INSTANTIATE_TEST_SUITE_P(By, ForwardSecrecy, ::testing::Values(true, false),
                         [](const auto& by) { return by.param ? "OpenSsl" : "WhatIsBest"; });

// The former scheme, in which the keys of phases were a chain of hashes, without new secrets. The
// attack below must succeed against it.
class ChainOfHashes final : public KeyExchange {
 public:
  std::optional<Halves> make(const keys::Key& mixed) override { return x25519().make(mixed); }
  std::optional<keys::Key> agree(const keys::Key&, const keys::Key&) override {
    return keys::Key{};
  }
};

// Returns true if an attacker can open a datagram of phase 1. The attacker has all that a process
// keeps for its whole life, including the root of phase 0, and has read all messages. The function
// tries everything that can be computed from these.
bool opens_phase_one(KeyExchange& exchange) {
  PairOfTwo pair({}, aead_maker(AeadKind::aes_128_gcm), exchange);
  std::vector<keys::Key> known = {keys::Key{}};
  EXPECT_TRUE(pair.pass(1));
  const PairKeys held = keys_of(1, true);
  for (bool any = true; any;) {
    any = false;
    for (const Rank from : {0, 1}) {
      for (const Bytes& message : pair.messages(from)) {
        any = true;
        Bytes read = message;
        const auto cipher = make_aead(AeadKind::aes_128_gcm, false);
        key_cipher(held, from == 0, *cipher);
        if (cipher->open(number_of(read), read)) {
          const ByteSpan plain = ByteSpan(read).subspan(kHeaderBytes, read.size() - kOverheadBytes);
          if (const auto told = decode_exchange_message(plain)) known.push_back(told->half);
        }
        (void)pair.open(1 - from, message);
      }
    }
  }
  EXPECT_EQ(known.size(), 3u);
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
  const Bytes recorded = pair.seal(0, bytes_of("of day one"));
  for (const keys::Key& one : known) {
    for (const keys::Key& other : known) {
      const keys::Key tries[] = {one, keys::extract(one, other)};
      for (const keys::Key& agreed : tries) {
        PairKeys guess = held;
        next_phase(guess, agreed);
        const auto cipher = make_aead(AeadKind::aes_128_gcm, false);
        key_cipher(guess, true, *cipher);
        Bytes copy = recorded;
        if (cipher->open(number_of(copy), copy)) return true;
      }
    }
  }
  return false;
}

TEST(ForwardSecrecyOfAPhase, TheRootOfPhaseZeroAndAllMessagesDoNotOpenIt) {
  EXPECT_FALSE(opens_phase_one(x25519()));
}

TEST(ForwardSecrecyOfAPhase, TheyWouldIfItCameOfAHash) {
  ChainOfHashes hashes;
  EXPECT_TRUE(opens_phase_one(hashes));
}

}  // namespace
}  // namespace leeway::seal
