#include "seal/key_schedule.h"

#include <gtest/gtest.h>

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

// WIRE 8.6: made by an independent program (Python's hmac and cryptography).
class PacketVectorTest : public ::testing::Test {
 protected:
  PairKeys keys(std::uint8_t suite) const {
    return derive_pair(key_from(0, 1), key_from(32, 1), key_from(0x33, 0),
                       {key_from(0x11, 0), 0xAABB1234}, {key_from(0x22, 0), 0xCCDD5678}, 0, suite);
  }
  static Bytes packet(AeadKind kind, const keys::Key& secret, const Header& header) {
    const auto cipher = make_aead(kind, true);
    key_cipher(secret, *cipher);
    const Bytes plain = bytes_of("leeway");
    Bytes out(kOverheadBytes + plain.size());
    encode_header(header, out);
    const Slice piece{plain.data(), plain.size()};
    cipher->seal(header.counter, {&piece, 1}, out);
    return out;
  }
};

TEST_F(PacketVectorTest, Aes128Gcm) {
  const Direction direction = keys(0).outbound;
  EXPECT_EQ(direction.tag, 0xCCDDA94F);
  EXPECT_EQ(direction.secret,
            array_of<32>("0f0845d1a73483c4d650b7cefbc1db1f1f6dc2fc44d69ec67750f354ac15dc3e"));
  EXPECT_EQ(
      packet(AeadKind::aes_128_gcm, direction.secret, {.tag = direction.tag, .counter = 1}),
      from_hex("400000004fa9ddcc0100000000000000757a7382a561df374e1a2cdfc2cf9064b9f16210ce66"));
}

TEST_F(PacketVectorTest, Aes128GcmInTheNextPhase) {
  const Direction direction = keys(0).outbound;
  EXPECT_EQ(
      packet(AeadKind::aes_128_gcm, next_phase(direction.secret),
             {.phase = 1, .tag = direction.tag, .counter = 0x0102030405060708}),
      from_hex("410000004fa9ddcc0807060504030201949945d651147537d977760cc04e15b5219169ad5b07"));
}

TEST_F(PacketVectorTest, Chacha20Poly1305) {
  const Direction direction = keys(1).outbound;
  EXPECT_EQ(
      packet(AeadKind::chacha20_poly1305, direction.secret, {.tag = direction.tag, .counter = 1}),
      from_hex("400000004fa9ddcc010000000000000004f4d223abfcd48e66299f847ab1e4e500186ec62b72"));
}

TEST(DerivePair, BothProcessesDeriveTheSame) {
  const PairKeys one = keys_of(3, true);
  const PairKeys other = keys_of(3, false);
  EXPECT_EQ(one.outbound.secret, other.inbound.secret);
  EXPECT_EQ(one.inbound.secret, other.outbound.secret);
  EXPECT_EQ(one.outbound.tag, other.inbound.tag);
  EXPECT_EQ(one.inbound.tag, other.outbound.tag);
  EXPECT_NE(one.leads, other.leads);
}

TEST(DerivePair, TheReceiverChoosesTheHighHalfOfATag) {
  const PairKeys keys = keys_of(3, true);
  EXPECT_EQ(keys.inbound.tag >> 16, 0x1111u);
  EXPECT_EQ(keys.outbound.tag >> 16, 0x2222u);
}

TEST(DerivePair, EverythingThatGoesInChangesTheKeys) {
  const keys::Key zero{};
  const keys::Key one = key_from(1, 0);
  const Party self;
  const Party peer{one, 0};
  const auto secret = [&](const keys::Key& agreed, const keys::Key& shared,
                          const keys::Key& meeting, const Party& to, std::uint8_t lane,
                          std::uint8_t suite) {
    return derive_pair(agreed, shared, meeting, self, to, lane, suite).outbound.secret;
  };
  const keys::Key plain = secret(zero, zero, zero, peer, 0, 0);
  EXPECT_NE(plain, secret(one, zero, zero, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, one, zero, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, one, peer, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, {key_from(2, 0), 0}, 0, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, peer, 1, 0));
  EXPECT_NE(plain, secret(zero, zero, zero, peer, 0, 1));
}

// Else both would seal with the same nonces under the same key.
TEST(DerivePair, TheTwoDirectionsHaveDifferentKeys) {
  for (unsigned number = 0; number < 20; ++number) {
    const PairKeys keys = keys_of(number, true);
    EXPECT_NE(keys.outbound.secret, keys.inbound.secret);
  }
}

}  // namespace
}  // namespace leeway::seal
