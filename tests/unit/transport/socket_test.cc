#include "transport/udp/socket.h"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>

#include "transport/udp/udp_transport.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

const UdpAddress kAnyPort(asio::ip::address_v4::loopback(), 0);

TEST(OpenUdpSocket, FeaturesThatAreNotWantedAreNotGranted) {
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  const auto grant = open_udp_socket(socket, {kAnyPort, 1u << 20, false, false});
  ASSERT_TRUE(grant.ok());
  EXPECT_FALSE(grant->segmentation);
  EXPECT_FALSE(grant->coalescing);
}

TEST(OpenUdpSocket, ReportsTheBuffersItGot) {
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  const auto grant = open_udp_socket(socket, {kAnyPort, 64u << 10, true, true});
  ASSERT_TRUE(grant.ok());
  // The kernel doubles the asked size, and 64 KiB are below every system's limit.
  EXPECT_EQ(grant->receive_account_bytes, 128u << 10);
  EXPECT_EQ(grant->send_account_bytes, 128u << 10);
}

TEST(OpenUdpSocket, APortInUseIsAnErrorThatNamesIt) {
  asio::io_context context;
  asio::ip::udp::socket first(context);
  ASSERT_TRUE(open_udp_socket(first, {kAnyPort, 64u << 10}).ok());
  asio::ip::udp::socket second(context);
  const auto refused = open_udp_socket(second, {first.local_endpoint(), 64u << 10});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(refused.status().text().find(std::to_string(first.local_endpoint().port())),
            std::string_view::npos);
}

TEST(PayloadCapacity, IsAWholeNumberOfDatagramsAndGrowsWithTheBuffer) {
  EXPECT_EQ(payload_capacity(1u << 20, 1472) % 1472, 0u);
  EXPECT_LT(payload_capacity(1u << 20, 1472), payload_capacity(1u << 21, 1472));
  EXPECT_LT(payload_capacity(1u << 20, 8972), 1u << 20);
}

struct Shape {
  std::size_t datagram_bytes;
  bool offload;
};

class PayloadCapacityOnLoopback : public testing::TestWithParam<Shape> {};

TEST_P(PayloadCapacityOnLoopback, IsNeverMoreThanTheKernelQueues) {
  UdpOptions options;
  options.datagram_bytes = GetParam().datagram_bytes;
  options.use_gso = options.use_gro = GetParam().offload;
  options.socket_buffer_bytes = 512u << 10;
  auto group = make_udp_group(2, options);
  const std::size_t count = group[1]->limits().receive_buffer_bytes / options.datagram_bytes;
  ASSERT_GT(count, 0u);
  const OwnedTrain one(1, options.datagram_bytes, pattern(options.datagram_bytes));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(send_one(*group[0], one.train), 1u);
  EXPECT_EQ(receive_all(*group[1], count).size(), count);
  EXPECT_EQ(group[1]->counters().kernel_drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PayloadCapacityOnLoopback,
                         testing::Values(Shape{512, false}, Shape{1472, false}, Shape{1472, true},
                                         Shape{4000, false}, Shape{8972, false}, Shape{8972, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.datagram_bytes) +
                                  (test.param.offload ? "Offload" : "Plain");
                         });

}  // namespace
}  // namespace leeway::transport
