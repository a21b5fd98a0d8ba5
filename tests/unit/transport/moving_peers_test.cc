// Tests sealed peers over real sockets, behind a translator that changes their addresses.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "transport/sealed/sealed_transport.h"
#include "unit/seal/pair.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using Socket = asio::ip::udp::socket;

Instant clock_now() {
  return {std::chrono::steady_clock::now().time_since_epoch().count()};
}

// Process 0 is behind a translator. It sends to `inside_`, and process 1 hears it from `outside_`.
class MovingPeersTest : public ::testing::Test {
 protected:
  MovingPeersTest() {
    for (const Rank self : {0, 1}) {
      auto udp = UdpTransport::open({}).value();
      udp_[self] = udp.get();
      ends_[self] = std::make_unique<SealedTransport>(std::move(udp), clock_now);
    }
    inside_ = open("127.0.0.1");
    outside_ = open("127.0.0.1");
    introduce(0, inside_->local_endpoint());
    introduce(1, outside_->local_endpoint());
    exchange_for(50ms);
  }

  std::unique_ptr<Socket> open(const char* address) {
    auto socket = std::make_unique<Socket>(context_);
    socket->open(asio::ip::udp::v4());
    socket->bind({asio::ip::make_address(address), 0});
    socket->non_blocking(true);
    return socket;
  }

  void introduce(Rank self, const UdpAddress& peers_address) {
    const Rank peer = 1 - self;
    const UdpAddress own = udp_[self]->local_address();
    ASSERT_TRUE(udp_[self]->meet_peer(0, self == 0 ? own : peers_address).ok());
    ASSERT_TRUE(udp_[self]->meet_peer(1, self == 1 ? own : peers_address).ok());
    ends_[self]->meet(peer, seal::keys_of(1, self == 0),
                      seal::aead_maker(seal::AeadKind::aes_128_gcm));
  }

  // Forwards the datagrams that `from` received to `address`, by way of `to`. A copier sees them
  // first.
  void forward(Socket& from, Socket& to, const UdpAddress& address) {
    std::array<std::byte, 2048> bytes;
    while (true) {
      std::error_code error;
      UdpAddress source;
      const std::size_t got = from.receive_from(asio::buffer(bytes), source, 0, error);
      if (error) return;
      if (drops_) continue;
      if (copier_ && &to != inside_.get()) copier_(ByteSpan(bytes).first(got));
      to.send_to(asio::buffer(bytes.data(), got), address, 0, error);
    }
  }

  void translate() {
    forward(*inside_, *outside_, udp_[1]->local_address());
    forward(*outside_, *inside_, udp_[0]->local_address());
    if (copying_ != nullptr) forward(*copying_, *inside_, udp_[0]->local_address());
  }

  // Sends a datagram each way. Returns true if both arrive within a second and a half.
  bool exchange() {
    bool arrived[2] = {false, false};
    const auto end = std::chrono::steady_clock::now() + 1500ms;
    auto send_at = std::chrono::steady_clock::now();
    while (!(arrived[0] && arrived[1]) && std::chrono::steady_clock::now() < end) {
      if (std::chrono::steady_clock::now() >= send_at) {
        for (const Rank self : {0, 1}) {
          const OwnedTrain train(1 - self, 100, pattern(100));
          send_one(*ends_[self], train.train);
        }
        send_at += 5ms;
      }
      translate();
      for (const Rank self : {0, 1}) {
        std::array<Received, 8> out;
        arrived[self] |= ends_[self]->receive(out) > 0;
        ends_[self]->wait(Duration(0));
      }
    }
    return arrived[0] && arrived[1];
  }
  void exchange_for(Duration time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) (void)exchange();
  }
  std::optional<seal::Roaming::Move> move_seen_by(Rank self) { return ends_[self]->poll_move(); }

  asio::io_context context_;
  UdpTransport* udp_[2];
  std::unique_ptr<SealedTransport> ends_[2];
  std::unique_ptr<Socket> inside_, outside_;
  std::unique_ptr<Socket> copying_;
  std::function<void(ByteSpan)> copier_;
  bool drops_ = false;
};

TEST_F(MovingPeersTest, APeerThatStaysIsNotMoved) {
  exchange_for(300ms);
  EXPECT_FALSE(move_seen_by(0) || move_seen_by(1));
}

TEST_F(MovingPeersTest, ATranslatorThatTakesAnotherPortIsFollowed) {
  outside_ = open("127.0.0.1");
  ASSERT_TRUE(exchange());  // in both directions: by then the path has moved
  const auto move = move_seen_by(1);
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, network_address(outside_->local_endpoint()));
  EXPECT_TRUE(move->same_host);
  EXPECT_FALSE(move_seen_by(0));
}

TEST_F(MovingPeersTest, AnotherAddressIsFollowedAndIsAnotherHost) {
  outside_ = open("127.0.0.9");
  ASSERT_TRUE(exchange());
  const auto move = move_seen_by(1);
  ASSERT_TRUE(move);
  EXPECT_FALSE(move->same_host);
}

TEST_F(MovingPeersTest, ReplayedAndForgedDatagramsMoveNothing) {
  std::vector<Bytes> heard;
  copier_ = [&](ByteSpan bytes) { heard.push_back(bytes_of(bytes)); };
  exchange_for(50ms);
  copier_ = nullptr;
  const auto elsewhere = open("127.0.0.66");
  for (Bytes& bytes : heard) {
    elsewhere->send_to(asio::buffer(bytes), udp_[1]->local_address());
    bytes[10] ^= std::byte{1};  // a later number
    elsewhere->send_to(asio::buffer(bytes), udp_[1]->local_address());
  }
  exchange_for(300ms);
  EXPECT_FALSE(move_seen_by(1));
  std::array<std::byte, 64> answer;
  std::error_code error;
  UdpAddress source;
  EXPECT_EQ(elsewhere->receive_from(asio::buffer(answer), source, 0, error), 0u);
}

// An attacker on the path sends a copy of every datagram, which overtakes the datagram. If peers
// sent to his address, he would forward that, too.
TEST_F(MovingPeersTest, ACopierOnThePathTakesNoTrafficAway) {
  copying_ = open("127.0.0.66");
  copier_ = [&](ByteSpan bytes) {
    copying_->send_to(asio::buffer(bytes.data(), bytes.size()), udp_[1]->local_address());
  };
  exchange_for(2500ms);
  EXPECT_FALSE(move_seen_by(1));
  EXPECT_TRUE(exchange());
}

}  // namespace
}  // namespace leeway::transport
