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

// WIRE 9.1
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

}  // namespace
}  // namespace leeway::seal
