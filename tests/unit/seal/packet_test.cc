#include "seal/packet.h"

#include <gtest/gtest.h>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

// Compares the bytes of a seal header with the table in WIRE 8.1.
TEST(SealHeader, HasTheBytesOfItsTable) {
  Bytes out(kHeaderBytes);
  encode_header({.phase = 2, .lane = 3, .tag = 0x09080706, .counter = 0x11100F0E0D0C0B0A}, out);
  EXPECT_EQ(out, from_hex("52030000060708090a0b0c0d0e0f1011"));
}

TEST(SealHeader, IsReadAsItWasWritten) {
  const Header header{.phase = 3, .lane = 1, .tag = 0xFFFFFFFF, .counter = 1};
  Bytes datagram(kOverheadBytes + 1);
  encode_header(header, datagram);
  Header read;
  EXPECT_EQ(decode_header(datagram, read), Refusal::none);
  EXPECT_EQ(read, header);
}

TEST(SealHeader, RefusesWhatHoldsNothing) {
  Bytes datagram(kOverheadBytes + 1);
  encode_header({.counter = 1}, datagram);
  Header header;
  for (std::size_t bytes = 0; bytes <= kOverheadBytes; ++bytes)
    EXPECT_EQ(decode_header(ByteSpan(datagram).first(bytes), header), Refusal::truncated) << bytes;
}

// A datagram without a seal begins with "L" (0x4C), which is not the first byte of a sealed one.
TEST(SealHeader, RefusesOtherFormsAndVersions) {
  Bytes datagram(kOverheadBytes + 1);
  for (unsigned form = 0; form < 256; ++form) {
    datagram[0] = static_cast<std::byte>(form);
    Header header;
    EXPECT_EQ(decode_header(datagram, header),
              form >= 0x50 && form <= 0x57 ? Refusal::none : Refusal::form)
        << form;
  }
}

}  // namespace
}  // namespace leeway::seal
