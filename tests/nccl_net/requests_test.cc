// Tests of requests: how many may be open, and what test() returns for them.
#include <gtest/gtest.h>

#include "traffic.h"

namespace nccl_net_test {
namespace {

TEST(Requests, AReceiveMayBeLongerThanWhatComes) {
  const Net net = load();
  const Pair pair = make_pair(net);
  for (const std::size_t size : {0, 1, 1000, 70'000}) {
    std::vector<char> room(100'000, 'x');
    const std::vector<char> data = pattern(size, 1);
    void* const receiving = begin_receive(net, pair.receiver, room);
    void* const sending = begin_send(net, pair.sender, data);
    ASSERT_TRUE(receiving != nullptr && sending != nullptr);
    int received = -1;
    int sent = -1;
    EXPECT_EQ(finish(net, receiving, &received), kSuccess);
    EXPECT_EQ(finish(net, sending, &sent), kSuccess);
    EXPECT_EQ(received, static_cast<int>(size));
    EXPECT_EQ(sent, static_cast<int>(size));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), room.begin()));
    EXPECT_EQ(room[size], 'x');
  }
  close(net, pair);
}

TEST(Requests, MessagesWithoutBytesNeedNoMemory) {
  const Net net = load();
  const Pair pair = make_pair(net);
  void* receiving = nullptr;
  void* sending = nullptr;
  ASSERT_EQ(net.receive(pair.receiver, nullptr, 0, &receiving), kSuccess);
  ASSERT_EQ(net.send(pair.sender, nullptr, 0, &sending), kSuccess);
  int size = -1;
  EXPECT_EQ(finish(net, receiving, &size), kSuccess);
  EXPECT_EQ(size, 0);
  EXPECT_EQ(finish(net, sending), kSuccess);
  close(net, pair);
}

TEST(Requests, ThirtyTwoAreUnderWayAndNoMore) {
  const Net net = load();
  const Pair pair = make_pair(net);
  std::vector<std::vector<char>> rooms(LEEWAY_NCCL_NET_REQUESTS, std::vector<char>(1000));
  std::vector<void*> receiving;
  for (auto& room : rooms) {
    receiving.push_back(nullptr);
    ASSERT_EQ(net.receive(pair.receiver, room.data(), room.size(), &receiving.back()), kSuccess);
    ASSERT_NE(receiving.back(), nullptr);
  }
  std::vector<char> more(1000);
  void* one_more = &more;
  EXPECT_EQ(net.receive(pair.receiver, more.data(), more.size(), &one_more), kSuccess);
  EXPECT_EQ(one_more, nullptr);

  for (int i = 0; i <= LEEWAY_NCCL_NET_REQUESTS; ++i) {
    const auto data = pattern(1000, i);
    void* const sending = begin_send(net, pair.sender, data);
    ASSERT_NE(sending, nullptr);
    if (i == LEEWAY_NCCL_NET_REQUESTS) {
      one_more = begin_receive(net, pair.receiver, more);
      ASSERT_NE(one_more, nullptr);
      EXPECT_EQ(finish(net, one_more), kSuccess);
      EXPECT_EQ(more, data);
    } else {
      EXPECT_EQ(finish(net, receiving[i]), kSuccess);
      EXPECT_EQ(rooms[i], data) << "message " << i;
    }
    EXPECT_EQ(finish(net, sending), kSuccess);
  }
  close(net, pair);
}

TEST(Requests, ThirtyTwoSendsAreUnderWayAndNoMore) {
  const Net net = load();
  const Pair pair = make_pair(net);
  std::vector<std::vector<char>> data;
  std::vector<void*> sending;
  for (int i = 0; i < LEEWAY_NCCL_NET_REQUESTS; ++i) {
    data.push_back(pattern(200'000, i));
    sending.push_back(nullptr);
    ASSERT_EQ(net.send(pair.sender, data[i].data(), data[i].size(), &sending[i]), kSuccess);
    ASSERT_NE(sending[i], nullptr);
  }
  void* one_more = &data;
  EXPECT_EQ(net.send(pair.sender, data[0].data(), data[0].size(), &one_more), kSuccess);
  EXPECT_EQ(one_more, nullptr);
  EXPECT_TRUE(receive_stream(net, pair.receiver, LEEWAY_NCCL_NET_REQUESTS, 200'000, 4));
  for (void* const request : sending) EXPECT_EQ(finish(net, request), kSuccess);
  close(net, pair);
}

TEST(Requests, MemoryMayBeRegistered) {
  const Net net = load();
  const Pair pair = make_pair(net);
  std::vector<char> memory(4096);
  void* registration = nullptr;
  EXPECT_EQ(net.reg(pair.sender, memory.data(), memory.size(), 1, &registration), kSuccess);
  EXPECT_NE(registration, nullptr);
  EXPECT_EQ(net.dereg(pair.sender, registration), kSuccess);
  void* flushing = &memory;
  EXPECT_EQ(net.flush(pair.receiver, &flushing), kSuccess);
  EXPECT_EQ(flushing, nullptr);
  close(net, pair);
}

}  // namespace
}  // namespace nccl_net_test
