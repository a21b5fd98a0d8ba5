#include "transport/udp/address.h"

#include <gtest/gtest.h>

#include "transport/near_datagram.h"

namespace leeway::transport {
namespace {

using asio::ip::make_address;

TEST(PathDatagramBytes, LoopbackAsANetworkIsCutToAJumboFrame) {
  EXPECT_EQ(path_datagram_bytes(make_address("127.0.0.1"), Loopback::network).value(), 9000u - 28u);
  EXPECT_EQ(path_datagram_bytes(make_address("127.1.2.3"), Loopback::network).value(), 9000u - 28u);
}

TEST(PathDatagramBytes, LoopbackAsMemoryCarriesWhatMemoryDoes) {
  EXPECT_EQ(path_datagram_bytes(make_address("127.1.2.3"), Loopback::memory).value(),
            kNearDatagramBytes);
}

TEST(PathDatagramBytes, AnUnspecifiedAddressGetsEthernetsSize) {
  EXPECT_EQ(path_datagram_bytes(make_address("0.0.0.0"), Loopback::memory).value(), 1472u);
  EXPECT_EQ(path_datagram_bytes(make_address("::"), Loopback::memory).value(), 1452u);
}

TEST(PathDatagramBytes, AnAddressOfAnotherHostIsRefusedByName) {
  const auto result = path_datagram_bytes(make_address("192.0.2.7"), Loopback::memory);
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
