#include "transport/verbs/address.h"

#include <gtest/gtest.h>

#include "unit/transport/fake_verbs.h"

namespace leeway::transport {
namespace {

VerbsAddress infiniband_address() {
  VerbsAddress address{LinkLayer::infiniband, 0x1234, 0xABCDE, 0xDEADBEEF, {}};
  address.gid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  return address;
}

TEST(VerbsAddressBytes, AreReadAsTheyWereWritten) {
  for (const VerbsAddress& address : {roce_address(7, 0xFFFFFE), infiniband_address()}) {
    const auto bytes = encode(address);
    ASSERT_EQ(bytes.size(), kVerbsAddressBytes);
    const auto read = decode_verbs_address(bytes);
    ASSERT_TRUE(read.ok()) << read.status().c_str();
    EXPECT_EQ(*read, address);
  }
}

TEST(VerbsAddressBytes, LieWhereTheHeaderSays) {
  const auto bytes = encode(infiniband_address());
  const std::uint8_t expected[] = {1,    1,    0x12, 0x34, 0,    0x0A, 0xBC,
                                   0xDE, 0xDE, 0xAD, 0xBE, 0xEF, 0xFE, 0x80};
  for (std::size_t i = 0; i < sizeof(expected); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
  }
}

TEST(VerbsAddressBytes, OfAnotherVersionOrLengthAreRefused) {
  auto bytes = encode(roce_address(1));
  bytes[0] = std::byte{2};
  EXPECT_EQ(decode_verbs_address(bytes).status().code(), StatusCode::kMismatch);
  bytes[0] = std::byte{1};
  bytes.push_back({});
  EXPECT_EQ(decode_verbs_address(bytes).status().code(), StatusCode::kInvalidArgument);
  for (std::size_t length = 0; length < kVerbsAddressBytes; ++length) {
    EXPECT_FALSE(decode_verbs_address(ByteSpan(bytes).first(length)).ok()) << length;
  }
}

TEST(VerbsAddressBytes, ThatNoQueuePairCanHaveAreRefused) {
  const auto refused = [](auto&& change, VerbsAddress address = roce_address(1)) {
    change(address);
    const auto read = decode_verbs_address(encode(address));
    return !read.ok() && read.status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](VerbsAddress&) {}));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.link = static_cast<LinkLayer>(3); }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.lid = 1; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.queue_pair = 1; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.queue_pair = kMulticastQueuePair; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.queue_pair = 1u << 24; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.gid = {}; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.gid[0] = 0xFF; }));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.lid = 0; }, infiniband_address()));
  EXPECT_TRUE(refused([](VerbsAddress& a) { a.lid = 0xC000; }, infiniband_address()));
}

TEST(VerbsAddressBytes, OfAnyKindAreReadSafelyAndOnlyIfTheyRoundTrip) {
  Bytes bytes = pattern(20000 * kVerbsAddressBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kVerbsAddressBytes) {
    bytes[at] = std::byte{1};
    if (at % 2 == 0) bytes[at + 1] = std::byte{static_cast<unsigned char>(1 + at / 4 % 2)};
    const ByteSpan one = ByteSpan(bytes).subspan(at, kVerbsAddressBytes);
    const auto read = decode_verbs_address(one);
    if (!read.ok()) continue;
    EXPECT_EQ(encode(*read), bytes_of(one));
  }
}

TEST(VerbsGidOf, IsTheIpAddress) {
  for (const char* text : {"10.1.2.3", "fd00::1:2", "::1"}) {
    EXPECT_EQ(ip_text(gid_of(asio::ip::make_address(text))), text);
  }
}

}  // namespace
}  // namespace leeway::transport
