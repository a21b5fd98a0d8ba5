#include "interop/nccl_net/connection.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace leeway::nccl_net {
namespace {

constexpr std::size_t kPiece = 1000;

struct Ends {
  std::unique_ptr<Connection> receiver;
  std::unique_ptr<Connection> sender;
};

Ends make_ends() {
  auto both = Communicator::create_inproc(2);
  EXPECT_TRUE(both.ok());
  return {std::make_unique<Connection>(std::move((*both)[0]), "receiver", no_deadline, kPiece),
          std::make_unique<Connection>(std::move((*both)[1]), "sender", no_deadline, kPiece)};
}

std::vector<unsigned char> counting(std::size_t size) {
  std::vector<unsigned char> data(size);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(size));
  return data;
}

// Polls both requests in turn until both are done. A message of several pieces goes on only while
// both sides are polled.
std::size_t finish_both(Request& receiving, Request& sending) {
  bool received = false;
  bool sent = false;
  std::size_t got = 0;
  std::size_t gone = 0;
  while (!received || !sent) {
    if (!received) {
      EXPECT_EQ(Connection::test(receiving, received, got), nccl::kSuccess);
    }
    if (!sent) {
      EXPECT_EQ(Connection::test(sending, sent, gone), nccl::kSuccess);
    }
  }
  EXPECT_EQ(got, gone);
  return got;
}

TEST(NcclNetConnection, MessagesOfSeveralPiecesArriveWhole) {
  const Ends ends = make_ends();
  for (const std::size_t size : {kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 3 * kPiece + 7}) {
    const auto data = counting(size);
    std::vector<unsigned char> room(4 * kPiece);
    Request* receiving = nullptr;
    Request* sending = nullptr;
    ASSERT_EQ(ends.receiver->receive(room.data(), room.size(), receiving), nccl::kSuccess);
    ASSERT_EQ(ends.sender->send(data.data(), data.size(), sending), nccl::kSuccess);
    ASSERT_TRUE(receiving != nullptr && sending != nullptr) << size;
    EXPECT_EQ(finish_both(*receiving, *sending), size);
    room.resize(size);
    EXPECT_EQ(room, data);
  }
}

TEST(NcclNetConnection, AReceiveOfWholePiecesIsFilled) {
  const Ends ends = make_ends();
  const auto data = counting(2 * kPiece);
  std::vector<unsigned char> room(2 * kPiece);
  Request* receiving = nullptr;
  Request* sending = nullptr;
  ASSERT_EQ(ends.receiver->receive(room.data(), room.size(), receiving), nccl::kSuccess);
  ASSERT_EQ(ends.sender->send(data.data(), data.size(), sending), nccl::kSuccess);
  EXPECT_EQ(finish_both(*receiving, *sending), data.size());
  EXPECT_EQ(room, data);
}

TEST(NcclNetConnection, LongMessagesAreUnderWayAlone) {
  const Ends ends = make_ends();
  const auto small = counting(10);
  const auto large = counting(kPiece);
  std::vector<unsigned char> room(kPiece);
  Request* first = nullptr;
  Request* second = nullptr;
  ASSERT_EQ(ends.receiver->receive(room.data(), 10, first), nccl::kSuccess);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ends.receiver->receive(room.data(), kPiece, second), nccl::kSuccess);
  EXPECT_EQ(second, nullptr);

  Request* sending = nullptr;
  ASSERT_EQ(ends.sender->send(small.data(), small.size(), sending), nccl::kSuccess);
  ASSERT_NE(sending, nullptr);
  EXPECT_EQ(finish_both(*first, *sending), 10U);

  ASSERT_EQ(ends.sender->send(large.data(), large.size(), sending), nccl::kSuccess);
  ASSERT_NE(sending, nullptr);
  EXPECT_EQ(ends.sender->send(small.data(), small.size(), second), nccl::kSuccess);
  EXPECT_EQ(second, nullptr);
  ASSERT_EQ(ends.receiver->receive(room.data(), kPiece, first), nccl::kSuccess);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(finish_both(*first, *sending), kPiece);
  EXPECT_EQ(room, large);
}

TEST(NcclNetConnection, TheWrongEndIsRefusedAndStaysSo) {
  const Ends ends = make_ends();
  unsigned char byte = 0;
  Request* request = nullptr;
  EXPECT_EQ(ends.receiver->send(&byte, 1, request), nccl::kInvalidArgument);
  EXPECT_EQ(ends.receiver->receive(&byte, 1, request), nccl::kInvalidArgument);
  EXPECT_EQ(ends.sender->send(&byte, kMessageBytesMax + 1, request), nccl::kInvalidArgument);
  EXPECT_EQ(request, nullptr);
}

}  // namespace
}  // namespace leeway::nccl_net
