#include "seal/path_message.h"

#include <gtest/gtest.h>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

PathMessage challenge() {
  PathMessage message{PathMessage::Kind::challenge, 0x0102030405060708, {}};
  message.seen.port = 0x1234;
  message.seen.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1};
  return message;
}

Bytes encoded(const PathMessage& message) {
  Bytes bytes(kPathMessageBytesMax);
  bytes.resize(encode_path_message(message, bytes));
  return bytes;
}

// WIRE 9.1 specifies these bytes.
TEST(PathMessage, BytesAreThoseOfTheSpecification) {
  EXPECT_EQ(encoded(challenge()),
            from_hex("01003412080706050403020100000000000000000000ffffc0000201"));
  EXPECT_EQ(encoded({}), from_hex("03"));
}

TEST(PathMessage, ComesBackAsItWas) {
  PathMessage message = challenge();
  EXPECT_EQ(decode_path_message(encoded(message)), message);
  message.kind = PathMessage::Kind::answer;
  EXPECT_EQ(decode_path_message(encoded(message)), message);
  message.kind = PathMessage::Kind::whereabouts;
  EXPECT_EQ(decode_path_message(encoded(message)), message);
  EXPECT_EQ(decode_path_message(encoded({})), PathMessage{});
}

TEST(PathMessage, OtherLengthsAndKindsAreNone) {
  for (std::size_t bytes = 0; bytes < kPathMessageBytesMax; ++bytes) {
    Bytes cut = encoded(challenge());
    cut.resize(bytes);
    EXPECT_FALSE(decode_path_message(cut)) << bytes;
  }
  Bytes longer = encoded(challenge());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_path_message(longer));
  EXPECT_FALSE(decode_path_message(from_hex("0300")));
  EXPECT_FALSE(decode_path_message(from_hex("00")));
  Bytes other = encoded(challenge());
  other[0] = std::byte{200};
  EXPECT_FALSE(decode_path_message(other));
}

Bytes encoded_head(const RelayHead& head) {
  Bytes out(kRelayHeadBytes + 1);  // and one byte of the relayed datagram
  encode_relay_head(head, out);
  return out;
}

TEST(RelayHeadBytes, AreTheseOnTheWire) {
  const RelayHead head{RelayHead::Kind::relayed, Ecn::ce, 0x0102030405060708};
  EXPECT_EQ(encoded_head(head), from_hex("06000300080706050403020100"));
}

TEST(RelayHeadBytes, ComeBackAsTheyWere) {
  for (const auto kind : {RelayHead::Kind::onward, RelayHead::Kind::relayed}) {
    for (const Ecn ecn : {Ecn::none, Ecn::ect0, Ecn::ect1, Ecn::ce}) {
      const RelayHead head{kind, ecn, 77};
      EXPECT_EQ(decode_relay_head(encoded_head(head)), head);
    }
  }
}

TEST(RelayHeadBytes, OfOtherKindsAndWithNothingBehindThemAreNone) {
  const Bytes good = encoded_head({});
  ASSERT_TRUE(decode_relay_head(good));
  for (std::size_t bytes = 0; bytes <= kRelayHeadBytes; ++bytes)
    EXPECT_FALSE(decode_relay_head(ByteSpan(good).first(bytes))) << bytes;
  for (const auto& [at, value] :
       std::vector<std::pair<int, int>>{{0, 4}, {0, 7}, {1, 1}, {2, 4}, {3, 1}}) {
    Bytes other = good;
    other[static_cast<std::size_t>(at)] = std::byte(value);
    EXPECT_FALSE(decode_relay_head(other)) << at;
  }
  EXPECT_FALSE(decode_path_message(good));
}

// WIRE 8.5 specifies these bytes.
TEST(ExchangeMessage, BytesAreThoseOfTheSpecification) {
  ExchangeMessage offer{ExchangeMessage::Kind::offer, 0x01020304, {}};
  offer.half.fill(std::byte{0xAB});
  Bytes bytes(kExchangeMessageBytesMax);
  EXPECT_EQ(encode_exchange_message(offer, bytes), 40u);
  EXPECT_EQ(bytes, from_hex("0700000004030201abababababababababababababababab"
                            "abababababababababababababababab"));
  EXPECT_EQ(decode_exchange_message(bytes), offer);
  bytes[0] = std::byte{8};
  EXPECT_EQ(decode_exchange_message(bytes)->kind, ExchangeMessage::Kind::accept);
  EXPECT_EQ(encode_exchange_message({ExchangeMessage::Kind::confirm}, bytes), 1u);
  EXPECT_EQ(bytes[0], std::byte{9});
  EXPECT_EQ(decode_exchange_message(from_hex("09"))->kind, ExchangeMessage::Kind::confirm);
  EXPECT_EQ(decode_exchange_message(from_hex("0a"))->kind, ExchangeMessage::Kind::confirmed);
}

TEST(ExchangeMessage, OtherLengthsAndKindsAreNone) {
  Bytes offer(kExchangeMessageBytesMax);
  offer[0] = std::byte{7};
  EXPECT_TRUE(decode_exchange_message(offer));
  for (std::size_t bytes = 0; bytes < offer.size(); ++bytes)
    EXPECT_FALSE(decode_exchange_message(ByteSpan(offer).first(bytes))) << bytes;
  offer.push_back(std::byte{0});
  EXPECT_FALSE(decode_exchange_message(offer));
  offer.pop_back();
  for (const std::size_t reserved : {1, 2, 3}) {
    Bytes other = offer;
    other[reserved] = std::byte{1};
    EXPECT_FALSE(decode_exchange_message(other));
  }
  for (const unsigned kind : {0, 1, 6, 11, 255}) {
    offer[0] = static_cast<std::byte>(kind);
    EXPECT_FALSE(decode_exchange_message(offer)) << kind;
  }
  EXPECT_FALSE(decode_exchange_message(from_hex("0900")));
}

// WIRE 9.10 specifies these bytes.
TEST(ShareMessage, BytesAreThoseOfTheSpecification) {
  const ShareMessage share{.refused = 0x01020304, .bytes_per_second = 0x0506};
  Bytes bytes(kShareMessageBytes);
  encode_share_message(share, bytes);
  EXPECT_EQ(bytes, from_hex("0b000000040302010605000000000000"));
  EXPECT_EQ(decode_share_message(bytes), share);
}

TEST(ShareMessage, OtherLengthsAndKindsAreNone) {
  const Bytes share = from_hex("0b000000040302010605000000000000");
  for (std::size_t bytes = 0; bytes < share.size(); ++bytes)
    EXPECT_FALSE(decode_share_message(ByteSpan(share).first(bytes))) << bytes;
  Bytes longer = share;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_share_message(longer));
  for (const std::size_t fixed : {0, 1, 2, 3}) {
    Bytes other = share;
    other[fixed] = std::byte{4};
    EXPECT_FALSE(decode_share_message(other)) << fixed;
  }
  EXPECT_FALSE(decode_path_message(share));
  EXPECT_FALSE(decode_relay_head(share));
  EXPECT_FALSE(decode_exchange_message(share));
}

}  // namespace
}  // namespace leeway::seal
