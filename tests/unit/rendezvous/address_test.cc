#include "rendezvous/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>

namespace leeway::rendezvous {
namespace {

using ::testing::HasSubstr;

TEST(ParseHostPort, TakesNamesAndAddresses) {
  const auto name = parse_host_port("node-a.example:4000");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->host, "node-a.example");
  EXPECT_EQ(name->port, 4000);
  const auto v4 = parse_host_port("10.0.0.1:1");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->host, "10.0.0.1");
  EXPECT_EQ(v4->port, 1);
  const auto v6 = parse_host_port("[fe80::1%eth0]:65535");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "fe80::1%eth0");
  EXPECT_EQ(v6->port, 65535);
}

TEST(ParseHostPort, RefusesWhatIsNeither) {
  for (const char* const bad :
       {"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:-1", "host:8o", "host: 80",
        "::1:80", "[::1]", "[::1]80", "[]:80", "[host]:80", "[::1:80", "::1]:80"}) {
    const auto result = parse_host_port(bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().c_str(), HasSubstr(std::string("\"") + bad + "\""));
  }
}

TEST(Resolve, TellsLiteralsFromNames) {
  asio::io_context io;
  const auto literal = resolve(io, {"127.0.0.1", 80});
  ASSERT_TRUE(literal.ok());
  EXPECT_TRUE(literal->literal);
  EXPECT_EQ(to_text(literal->endpoints.at(0)), "127.0.0.1:80");
  const auto name = resolve(io, {"localhost", 80});
  ASSERT_TRUE(name.ok()) << name.status().c_str();
  EXPECT_FALSE(name->literal);
  EXPECT_TRUE(name->endpoints.at(0).address().is_loopback());
}

TEST(AddressBytes, SurviveTheWayThereAndBack) {
  for (const char* const text : {"1.2.3.4", "::1", "2001:db8::ff"}) {
    const auto address = asio::ip::make_address(text);
    EXPECT_EQ(address_from_bytes(to_bytes(address)), address);
  }
  EXPECT_EQ(to_bytes(asio::ip::make_address("1.2.3.4")),
            (std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}));
}

TEST(AddressBytes, AreFourOrSixteen) {
  for (const std::size_t size : {0u, 1u, 3u, 5u, 15u, 17u}) {
    EXPECT_EQ(address_from_bytes(std::vector<std::byte>(size)), std::nullopt) << size;
  }
}

TEST(Unmapped, ShowsIPv4InsideIPv6) {
  EXPECT_EQ(unmapped(asio::ip::make_address("::ffff:10.0.0.1")),
            asio::ip::make_address("10.0.0.1"));
  EXPECT_EQ(unmapped(asio::ip::make_address("2001:db8::1")), asio::ip::make_address("2001:db8::1"));
}

TEST(ToText, PutsIPv6InBrackets) {
  EXPECT_EQ(to_text({asio::ip::make_address("::1"), 80}), "[::1]:80");
  EXPECT_EQ(to_text({asio::ip::make_address("::ffff:10.0.0.1"), 80}), "10.0.0.1:80");
}

TEST(IsPrivate, KnowsTheNetworksThatNobodyRoutes) {
  for (const char* const text : {"127.0.0.1",
                                 "127.8.8.8",
                                 "10.0.0.1",
                                 "10.255.255.255",
                                 "172.16.0.1",
                                 "172.31.255.255",
                                 "192.168.0.1",
                                 "169.254.1.1",
                                 "100.64.0.1",
                                 "100.127.255.255",
                                 "0.0.0.0",
                                 "::1",
                                 "::",
                                 "fe80::1",
                                 "fc00::1",
                                 "fdff::1",
                                 "::ffff:10.1.1.1",
                                 "2001:db8::1",
                                 "192.0.2.2",
                                 "198.51.100.9",
                                 "203.0.113.1",
                                 "198.18.0.1",
                                 "198.19.255.255"}) {
    EXPECT_TRUE(is_private(asio::ip::make_address(text))) << text;
  }
  for (const char* const text :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
        "192.169.0.0", "169.253.0.1", "100.63.255.255", "100.128.0.0", "203.0.114.1", "2001:db9::1",
        "198.20.0.0", "fec0::1", "fe00::1", "::ffff:1.1.1.1"}) {
    EXPECT_FALSE(is_private(asio::ip::make_address(text))) << text;
  }
}

TEST(NetworkOf, CountsNeighboursAlike) {
  const auto network = [](const char* text) { return network_of(asio::ip::make_address(text)); };
  EXPECT_EQ(network("203.0.113.1"), network("203.0.113.254"));
  EXPECT_EQ(network("203.0.113.1"), network("::ffff:203.0.113.9"));
  EXPECT_NE(network("203.0.113.1"), network("203.0.112.1"));
  EXPECT_EQ(network("2001:db8:1::1"), network("2001:db8:1:ffff::2"));
  EXPECT_NE(network("2001:db8:1::1"), network("2001:db8:2::1"));
  EXPECT_NE(network("0.0.0.1"), network("::2"));
  EXPECT_EQ(network("127.0.0.1"), 0u);
  EXPECT_EQ(network("::1"), 0u);
}

}  // namespace
}  // namespace leeway::rendezvous
