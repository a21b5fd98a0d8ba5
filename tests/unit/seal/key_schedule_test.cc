#include "seal/key_schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

keys::Key key_from(unsigned first, unsigned step) {
  keys::Key key;
  for (std::byte& byte : key) {
    byte = static_cast<std::byte>(first);
    first += step;
  }
  return key;
}

// Compares with the vectors of WIRE 8.6, which come from an independent program (Python's hmac and
// cryptography).
class PacketVectorTest : public ::testing::Test {
 protected:
  PairKeys keys(std::uint8_t suite) const {
    return derive_pair(key_from(0, 1), key_from(32, 1), key_from(0x33, 0),
                       {key_from(0x11, 0), 0xAABB1234}, {key_from(0x22, 0), 0xCCDD5678}, 0, suite);
  }
  static Bytes packet(AeadKind kind, const PairKeys& keys, Header header) {
    const auto cipher = make_aead(kind, true);
    key_cipher(keys, true, *cipher);
    header.tag = keys.outbound_tag;
    const Bytes plain = bytes_of("leeway");
    Bytes out(kOverheadBytes + plain.size());
    encode_header(header, out);
    const Slice piece{plain.data(), plain.size()};
    cipher->seal(header.counter, {&piece, 1}, out);
    return out;
  }
};

TEST_F(PacketVectorTest, Aes128Gcm) {
  const PairKeys pair = keys(0);
  EXPECT_EQ(pair.outbound_tag, 0xCCDDA94F);
  EXPECT_EQ(
      packet(AeadKind::aes_128_gcm, pair, {.counter = 1}),
      from_hex("500000004fa9ddcc0100000000000000757a7382a561dffeabf28ccebcccca164d777423888a"));
}

TEST_F(PacketVectorTest, Aes128GcmInTheNextPhase) {
  PairKeys pair = keys(0);
  next_phase(pair, key_from(64, 1));
  EXPECT_EQ(pair.outbound_tag, 0xCCDDA94F);
  EXPECT_EQ(
      packet(AeadKind::aes_128_gcm, pair, {.phase = 1, .counter = 0x0102030405060708}),
      from_hex("510000004fa9ddcc08070605040302015e6d550635738f33745c4bf1ba92fa09cafafd36e8d2"));
}

TEST_F(PacketVectorTest, Chacha20Poly1305) {
  EXPECT_EQ(
      packet(AeadKind::chacha20_poly1305, keys(1), {.counter = 1}),
      from_hex("500000004fa9ddcc010000000000000004f4d223abfc2db70cf448afd1f4e15a9cdfd492b99a"));
}

TEST(DerivePair, BothProcessesDeriveTheSame) {
  PairKeys one = keys_of(3, true);
  PairKeys other = keys_of(3, false);
  EXPECT_EQ(one.outbound_tag, other.inbound_tag);
  EXPECT_EQ(one.inbound_tag, other.outbound_tag);
  EXPECT_NE(one.leads, other.leads);
  for (unsigned phase = 0; phase < 3; ++phase) {
    EXPECT_EQ(cipher_key(one, true), cipher_key(other, false));
    EXPECT_EQ(cipher_key(one, false), cipher_key(other, true));
    next_phase(one, key_from(phase, 1));
    next_phase(other, key_from(phase, 1));
  }
}

TEST(DerivePair, TheReceiverChoosesTheHighHalfOfATag) {
  const PairKeys keys = keys_of(3, true);
  EXPECT_EQ(keys.inbound_tag >> 16, 0x1111u);
  EXPECT_EQ(keys.outbound_tag >> 16, 0x2222u);
}

TEST(NextPhase, TakesBothTheRootAndTheAgreement) {
  std::set<CipherKey> all;
  for (unsigned number = 1; number <= 2; ++number) {
    for (unsigned agreed = 1; agreed <= 2; ++agreed) {
      PairKeys keys = keys_of(number, true);
      all.insert(cipher_key(keys, true));
      next_phase(keys, key_from(agreed, 0));
      all.insert(cipher_key(keys, true));
    }
  }
  EXPECT_EQ(all.size(), 6u);
}

TEST(DerivePair, EverythingThatGoesInChangesTheKeys) {
  const keys::Key zero{};
  const keys::Key one = key_from(1, 0);
  const Party self;
  const Party peer{one, 0};
  const auto secret = [&](const keys::Key& agreed, const keys::Key& shared,
                          const keys::Key& meeting, const Party& to, std::uint8_t lane,
                          std::uint8_t suite) {
    return cipher_key(derive_pair(agreed, shared, meeting, self, to, lane, suite), true);
  };
  const CipherKey plain = secret(zero, zero, zero, peer, 0, 0);
  EXPECT_NE(plain, secret(one, zero, zero, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, one, zero, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, one, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, {key_from(2, 0), 0}, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, peer, 1, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, peer, 0, 1));
}

// Each direction must have a key of its own. With one key, both ends would seal with the same
// nonces.
TEST(DerivePair, TheTwoDirectionsHaveDifferentKeys) {
  for (unsigned number = 0; number < 20; ++number) {
    const PairKeys keys = keys_of(number, true);
    EXPECT_NE(cipher_key(keys, true), cipher_key(keys, false));
  }
}

}  // namespace
}  // namespace leeway::seal
