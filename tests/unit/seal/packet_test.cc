#include "seal/packet.h"

#include <gtest/gtest.h>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

// WIRE 8.1
TEST(SealHeader, HasTheBytesOfItsTable) {
  Bytes out(kHeaderBytes);
  encode_header(
      {.phase = 2, .lane = 3, .view = 0x0504, .tag = 0x09080706, .counter = 0x11100F0E0D0C0B0A},
      out);
  EXPECT_EQ(out, from_hex("52030405060708090a0b0c0d0e0f1011"));
}

TEST(SealHeader, IsReadAsItWasWritten) {
  const Header header{.phase = 3, .lane = 1, .view = 7, .tag = 0xFFFFFFFF, .counter = 1};
  Bytes datagram(kOverheadBytes + 1);
  encode_header(header, datagram);
  Refusal refusal{};
  EXPECT_EQ(decode_header(datagram, refusal), header);
  EXPECT_EQ(refusal, Refusal::none);
}

TEST(SealHeader, RefusesWhatHoldsNothing) {
  Bytes datagram(kOverheadBytes + 1);
  encode_header({.counter = 1}, datagram);
  Refusal refusal{};
  for (std::size_t bytes = 0; bytes <= kOverheadBytes; ++bytes) {
    EXPECT_FALSE(decode_header(ByteSpan(datagram).first(bytes), refusal)) << bytes;
    EXPECT_EQ(refusal, Refusal::truncated) << bytes;
  }
}

// A datagram that is not sealed begins with "L", which is another class.
TEST(SealHeader, RefusesOtherFormsAndVersions) {
  Bytes datagram(kOverheadBytes + 1);
  for (unsigned form = 0; form < 256; ++form) {
    datagram[0] = static_cast<std::byte>(form);
    Refusal refusal{};
    EXPECT_EQ(decode_header(datagram, refusal).has_value(), form >= 0x50 && form <= 0x57) << form;
  }
}

}  // namespace
}  // namespace leeway::seal
