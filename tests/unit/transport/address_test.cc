#include "transport/udp/address.h"

#include <gtest/gtest.h>

namespace leeway::transport {
namespace {

using asio::ip::make_address;

TEST(PathDatagramBytes, LoopbackIsCutToAJumboFrame) {
  EXPECT_EQ(path_datagram_bytes(make_address("127.0.0.1")).value(), 9000u - 28u);
  EXPECT_EQ(path_datagram_bytes(make_address("127.1.2.3")).value(), 9000u - 28u);
}

TEST(PathDatagramBytes, AnUnspecifiedAddressGetsEthernetsSize) {
  EXPECT_EQ(path_datagram_bytes(make_address("0.0.0.0")).value(), 1472u);
  EXPECT_EQ(path_datagram_bytes(make_address("::")).value(), 1452u);
}

TEST(PathDatagramBytes, AnAddressOfAnotherHostIsRefusedByName) {
  const auto result = path_datagram_bytes(make_address("192.0.2.7"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(result.status().text().find("192.0.2.7"), std::string_view::npos);
}

TEST(LocalAddressTowards, LoopbackIsReachedFromLoopback) {
  EXPECT_EQ(local_address_towards({make_address("127.0.0.1"), 9}).value(),
            make_address("127.0.0.1"));
}

TEST(LocalAddressTowards, AnUnroutableAddressIsAnErrorThatNamesIt) {
  const auto result = local_address_towards({make_address("255.255.255.255"), 9});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().text().find("255.255.255.255"), std::string_view::npos);
}

}  // namespace
}  // namespace leeway::transport
