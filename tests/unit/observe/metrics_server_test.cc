#include "observe/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"

namespace leeway::observe {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ask(const std::string& address, const std::string& request) {
  const auto where = rendezvous::parse_host_port(address);
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  std::error_code error;
  socket.connect({asio::ip::make_address(where->host), where->port}, error);
  if (error) return {};
  asio::write(socket, asio::buffer(request), error);
  std::string answer;
  asio::read(socket, asio::dynamic_buffer(answer), error);
  return answer;
}

std::string scrape(const std::string& address) {
  return ask(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
}

rendezvous::MetricsAddress loopback(std::uint16_t port = 0) {
  return {{"127.0.0.1", port}, false};
}

TEST(MetricsServer, AnswersWithWhatWasPutUp) {
  const auto server = MetricsServer::at(loopback());
  ASSERT_TRUE(server.ok());
  const auto board = std::make_shared<Board>();
  (*server)->show(board);
  driving::Snapshot snapshot;
  snapshot.wire.bytes_sent = 4711;
  board->put(snapshot, {});
  const std::string text = scrape((*server)->address());
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(text, HasSubstr("\nleeway_sent_bytes_total{driver=\"0\",transport=\"udp\"} 4711\n"));
}

TEST(MetricsServer, ForgetsWhoHasGone) {
  const auto server = MetricsServer::at(loopback());
  auto board = std::make_shared<Board>();
  (*server)->show(board);
  board.reset();
  EXPECT_THAT(scrape((*server)->address()), Not(HasSubstr("leeway_sent_bytes_total")));
}

TEST(MetricsServer, OneOfAnAddressIsShared) {
  const auto first = MetricsServer::at(loopback());
  const auto again = MetricsServer::at(loopback());
  EXPECT_EQ(first->get(), again->get());
}

TEST(MetricsServer, SaysWhereNobodyCanListen) {
  const auto taken = MetricsServer::at(loopback());
  const auto where = rendezvous::parse_host_port((*taken)->address());
  const auto second = MetricsServer::at(loopback(where->port));
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().c_str(), HasSubstr((*taken)->address()));
}

TEST(MetricsServer, RefusesOtherRequests) {
  const auto server = MetricsServer::at(loopback());
  const std::string& address = (*server)->address();
  EXPECT_THAT(ask(address, "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  // The request is longer than allowed and never ends.
  EXPECT_EQ(ask(address, std::string(100'000, 'x')), "");
}

TEST(MetricsServer, SilentVisitorsAreHungUpOn) {
  const auto server = MetricsServer::at(loopback());
  EXPECT_EQ(ask((*server)->address(), "GET /metrics"), "");
  EXPECT_THAT(scrape((*server)->address()), HasSubstr("leeway_build_info"));
}

// Opens connections that send nothing.
class SilentVisitors {
 public:
  SilentVisitors(const std::string& address, const char* from, int count) {
    const auto where = rendezvous::parse_host_port(address);
    for (int i = 0; i < count; ++i) {
      auto& socket = sockets_.emplace_back(io_);
      socket.open(asio::ip::tcp::v4());
      socket.bind({asio::ip::make_address(from), 0});
      socket.connect({asio::ip::make_address(where->host), where->port});
    }
  }

 private:
  asio::io_context io_;
  std::vector<asio::ip::tcp::socket> sockets_;
};

TEST(MetricsServer, SilenceLocksNobodyOut) {
  const auto server = MetricsServer::at(loopback());
  const std::string& address = (*server)->address();
  const SilentVisitors own(address, "127.0.0.1", 16);
  EXPECT_THAT(scrape(address), HasSubstr("leeway_build_info"));
  std::vector<std::unique_ptr<SilentVisitors>> others;
  for (const char* from : {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"})
    others.push_back(std::make_unique<SilentVisitors>(address, from, 16));
  EXPECT_THAT(scrape(address), HasSubstr("leeway_build_info"));
}

TEST(MetricsServer, ShowsACommunicatorsRanks) {
  // Two ranks of one process share this address.
  std::string address;
  {
    const auto free = MetricsServer::at(loopback());
    address = (*free)->address();
  }
  const auto store = std::make_shared<InprocRendezvous>();
  std::vector<std::thread> ranks;
  std::string text;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Options options;
      options.rank = rank;
      options.world_size = 2;
      options.transport = TransportKind::udp;
      options.store = store;
      options.metrics = address;
      auto comm = Communicator::create(options);
      ASSERT_TRUE(comm.ok()) << comm.status().c_str();
      std::vector<float> values(1000, 1.0f);
      ASSERT_TRUE((*comm)->all_reduce(std::span(values)).ok());
      std::this_thread::sleep_for(300ms);  // a snapshot is taken, and nothing happens afterwards
      if (rank == 0) text = scrape(address);
      ASSERT_TRUE((*comm)->barrier().ok());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_THAT(text, HasSubstr("rank=\"0\",peer=\"1\",state=\"alive\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rank=\"1\",peer=\"0\",state=\"alive\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("operation=\"all_reduce\",delivery=\"exact\"} 1\n"));
}

}  // namespace
}  // namespace leeway::observe
