#include "rendezvous/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

namespace leeway::rendezvous {
namespace {

using asio::ip::tcp;

struct Connected {
  Connected() {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    here.connect(acceptor.local_endpoint());
    there = acceptor.accept();
  }
  int option(int name) {
    int value = -1;
    socklen_t bytes = sizeof value;
    ::getsockopt(here.native_handle(), IPPROTO_TCP, name, &value, &bytes);
    return value;
  }
  asio::io_context io;
  tcp::socket here{io};
  tcp::socket there{io};
};

TEST(TcpSocket, SmallMessagesLeaveAtOnceAndComeAgainSoon) {
  Connected connected;
  EXPECT_EQ(connected.option(TCP_NODELAY), 0);
  speak_promptly(connected.here.native_handle());
  EXPECT_EQ(connected.option(TCP_NODELAY), 1);
  EXPECT_EQ(connected.option(TCP_THIN_LINEAR_TIMEOUTS), 1);
}

TEST(TcpSocket, KnowsItsRoundTrip) {
  Connected connected;
  const Duration round_trip = least_round_trip(connected.here.native_handle());
  EXPECT_GT(round_trip, Duration(0));
  EXPECT_LT(round_trip, std::chrono::seconds(1));
  EXPECT_EQ(least_round_trip(-1), Duration(0));
}

}  // namespace
}  // namespace leeway::rendezvous
