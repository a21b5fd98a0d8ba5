// Tests the verbs transport on the RDMA devices of the virtual machine that tools/vm_test boots.
#include "transport/verbs/verbs_transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "integration/emulated_links.h"
#include "integration/process.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

class VerbsDatagrams : public testing::Test {
 protected:
  void SetUp() override {
    std::string obstacle;
    links_ = integration::EmulatedLinks::create("", obstacle);
    if (links_ == nullptr) GTEST_SKIP() << obstacle;
    for (const std::string& address : links_->addresses()) {
      addresses_.push_back(asio::ip::make_address(address));
    }
    ASSERT_GE(addresses_.size(), 3u);
  }
  void connect(int size) {
    std::vector<std::vector<std::byte>> bytes;
    for (int i = 0; i < size; ++i) {
      auto opened = VerbsTransport::open({.bind_address = addresses_[i]});
      ASSERT_TRUE(opened.ok()) << opened.status().c_str();
      group_.push_back(std::move(*opened));
      bytes.push_back(group_.back()->local_address());
    }
    for (auto& transport : group_) {
      const Status known = transport->set_peers(bytes);
      ASSERT_TRUE(known.ok()) << known.c_str();
    }
  }
  std::unique_ptr<integration::EmulatedLinks> links_;
  std::vector<asio::ip::address> addresses_;
  std::vector<std::unique_ptr<VerbsTransport>> group_;
};

TEST_F(VerbsDatagrams, ArriveAsTheyWereSent) {
  connect(3);
  const std::size_t bytes = group_[0]->limits().datagram_bytes_max;
  ASSERT_GE(bytes, limits::kDatagramBytesMin);
  // Covers all three ways to send: copied, inline, and gathered from registered memory.
  const OwnedTrain copied(1, bytes, pattern(10 * bytes + 17), {48, 700, 3 * bytes + 5});
  const OwnedTrain small(1, 60, pattern(60 * 5, 7));
  const OwnedTrain gathered(1, bytes, pattern(8 * bytes + 99, 3), {48, 700});
  ASSERT_TRUE(group_[0]->register_memory(gathered.memory).ok());
  for (const OwnedTrain* train : {&copied, &small, &gathered}) {
    ASSERT_EQ(send_one(*group_[0], train->train), 1u);
    const std::vector<Bytes> got = receive_all(*group_[1], train->datagrams());
    ASSERT_EQ(got.size(), train->datagrams());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], bytes_of(train->datagram(i)));
  }
  EXPECT_EQ(group_[0]->counters().datagrams_copied, 10u);  // its last 17 bytes went inline
  EXPECT_EQ(group_[0]->borrowed(), 0u);
  EXPECT_EQ(receive_all(*group_[2], 1).size(), 0u);
  group_[0]->forget_memory(gathered.memory);
}

TEST_F(VerbsDatagrams, OfAGroupArriveAtAllOthersAndNotAtTheirSender) {
  connect(3);
  for (auto& transport : group_) {
    const Status joined = transport->join_multicast(asio::ip::make_address("239.77.1.1"));
    ASSERT_TRUE(joined.ok()) << joined.c_str();
    ASSERT_TRUE(transport->limits().multicast);
  }
  const OwnedTrain train(kEveryRank, 1000, pattern(5000));
  ASSERT_EQ(send_one(*group_[0], train.train), 1u);
  for (const int to : {1, 2}) EXPECT_EQ(receive_all(*group_[to], 5).size(), 5u) << to;
  EXPECT_EQ(receive_all(*group_[0], 1).size(), 0u);
  EXPECT_EQ(group_[0]->counters().from_strangers, 0u);
}

TEST_F(VerbsDatagrams, OfStrangersAreCountedAndNeverShown) {
  connect(2);
  auto stranger = VerbsTransport::open({.bind_address = addresses_[2]});
  ASSERT_TRUE(stranger.ok());
  ASSERT_TRUE((*stranger)
                  ->set_peers(std::vector{group_[0]->local_address(), (*stranger)->local_address()})
                  .ok());
  const OwnedTrain train(0, 1000, pattern(3000));
  ASSERT_EQ(send_one(**stranger, train.train), 1u);
  EXPECT_EQ(receive_all(*group_[0], 1).size(), 0u);
  EXPECT_EQ(group_[0]->counters().from_strangers, 3u);
}

TEST_F(VerbsDatagrams, FillTheReceiverAsFarAsPromised) {
  connect(2);
  const std::size_t bytes = group_[0]->limits().datagram_bytes_max;
  const std::size_t promised = group_[1]->limits().receive_buffer_bytes / bytes;
  const OwnedTrain train(1, bytes, pattern(64 * bytes));
  std::size_t sent = 0;
  while (sent + 64 <= promised) {
    sent += 64 * send_one(*group_[0], train.train);
    while (group_[0]->borrowed() > 0) group_[0]->wait(1ms);
  }
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(receive_all(*group_[1], sent).size(), sent);
}

TEST_F(VerbsDatagrams, AWaitEndsWhenOneArrivesOrSomebodyCalls) {
  connect(2);
  const auto timed = [&](auto&& cause) {
    const auto start = std::chrono::steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      cause();
    });
    group_[1]->wait(30s);
    other.join();
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_LT(timed([&] { group_[1]->wake(); }), 10s);
  const OwnedTrain train(1, 100, pattern(100));
  EXPECT_LT(timed([&] { send_one(*group_[0], train.train); }), 10s);
  EXPECT_EQ(receive_all(*group_[1], 1).size(), 1u);
  const auto start = std::chrono::steady_clock::now();
  group_[1]->wait(20ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
}

TEST_F(VerbsDatagrams, EndWhenTheDeviceIsRemovedWhichIsNoticedNamedAndLetHappen) {
  connect(3);
  ASSERT_TRUE(group_[1]->join_multicast(asio::ip::make_address("239.77.1.2")).ok());
  const std::string device = group_[1]->port().device;
  const OwnedTrain there(1, 1000, pattern(20000));
  const OwnedTrain back(0, 1000, pattern(20000));
  ASSERT_TRUE(group_[1]->register_memory(back.memory).ok());
  std::thread removal([&] {
    EXPECT_EQ(integration::run_command({"rdma", "link", "del", device}, 20s).exit_code, 0);
  });
  std::vector<Received> out(64);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (group_[1]->status().ok() && std::chrono::steady_clock::now() < until) {
    for (int rank : {0, 1}) {
      send_one(*group_[rank], rank == 0 ? there.train : back.train);
      if (group_[rank]->receive(out) == 0) group_[rank]->wait(1ms);
    }
  }
  // join() waits for `rdma link del`, which must end although the transport still exists.
  removal.join();
  const Status status = group_[1]->status();
  EXPECT_NE(status.text().find(device), std::string_view::npos) << status.c_str();
  EXPECT_NE(status.text().find("removed"), std::string_view::npos) << status.c_str();
  EXPECT_EQ(send_one(*group_[1], back.train), 1u);
  EXPECT_EQ(group_[1]->borrowed(), 0u);
  EXPECT_EQ(group_[1]->receive(out), 0u);
  EXPECT_FALSE(group_[1]->register_memory(there.memory).ok());
  group_[1]->forget_memory(back.memory);
  group_[1]->wait(1ms);
  EXPECT_TRUE(group_[0]->status().ok());
  group_.clear();

  auto without = VerbsTransport::open({.bind_address = addresses_[1]});
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().text().find(addresses_[1].to_string()), std::string_view::npos);
  integration::run_command(
      {"rdma", "link", "add", device, "type", "rxe", "netdev", links_->names()[1]});
  EXPECT_TRUE(VerbsTransport::open({.bind_address = addresses_[1]}).ok());
}

}  // namespace
}  // namespace leeway::transport
