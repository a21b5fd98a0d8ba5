// Tests of failures: wrong handles and calls, connections closed early, peers that die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peer.h"
#include "traffic.h"

namespace nccl_net_test {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Far longer than any of the calls with which NCCL polls.
constexpr std::chrono::milliseconds kNoWait(500);

TEST(Failures, ConnectAndAcceptNeverWait) {
  const Net net = load();
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(net.listen(0, handle, &listener), kSuccess);
  void* comm = &handle;
  EXPECT_EQ(net.connect(0, handle, &comm), kSuccess);
  EXPECT_EQ(comm, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kNoWait);
  // No end is connected by these first calls. So both ends call again until they are.
  void* receiver = nullptr;
  void* sender = nullptr;
  while (receiver == nullptr || sender == nullptr) {
    if (receiver == nullptr) {
      ASSERT_EQ(net.accept(listener, &receiver), kSuccess);
    }
    if (sender == nullptr) {
      ASSERT_EQ(net.connect(0, handle, &sender), kSuccess);
    }
  }
  EXPECT_EQ(net.close_listen(listener), kSuccess);
  close(net, {sender, receiver});
}

TEST(Failures, AListenerMayBeClosedWhileItAccepts) {
  const Net net = load();
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  ASSERT_EQ(net.listen(0, handle, &listener), kSuccess);
  void* comm = nullptr;
  EXPECT_EQ(net.accept(listener, &comm), kSuccess);
  EXPECT_EQ(comm, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(net.close_listen(listener), kSuccess);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kNoWait);
  EXPECT_EQ(take_warnings(), std::vector<std::string>());
}

TEST(Failures, WrongHandlesAreRefusedWithOneLine) {
  const Net net = load();
  Handle good(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  ASSERT_EQ(net.listen(0, good, &listener), kSuccess);
  const auto refused = [&](Handle handle, const char* why) {
    void* comm = &handle;
    EXPECT_EQ(net.connect(0, handle, &comm), kInvalidArgument);
    EXPECT_EQ(comm, nullptr);
    EXPECT_THAT(take_warnings(), ElementsAre(HasSubstr(why)));
  };
  refused(Handle(LEEWAY_NCCL_NET_HANDLE_BYTES), "does not use Leeway's network plugin");
  for (const std::size_t length : {8U, 60U, 127U}) {  // truncated
    Handle cut = good;
    std::fill(cut.begin() + static_cast<std::ptrdiff_t>(length), cut.end(), '\0');
    if (cut == good) cut.back() = 1;
    refused(cut, "checksum");
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    Handle wrong = good;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x40);
    void* comm = nullptr;
    EXPECT_EQ(net.connect(0, wrong, &comm), kInvalidArgument) << "byte " << at;
  }
  EXPECT_EQ(take_warnings().size(), good.size());
  EXPECT_EQ(net.close_listen(listener), kSuccess);
}

TEST(Failures, WrongCallsAreRefused) {
  const Net net = load();
  const Pair pair = make_pair(net);
  void* out = &out;
  EXPECT_EQ(net.receive_several(pair.receiver, 2, &out), kInvalidArgument);
  EXPECT_EQ(out, nullptr);
  char byte = 0;
  constexpr int kDeviceMemory = 2;
  EXPECT_EQ(net.reg(pair.sender, &byte, 1, kDeviceMemory, &out), kInvalidArgument);
  EXPECT_EQ(net.send(nullptr, &byte, 1, &out), kInvalidArgument);
  int done = 1;
  EXPECT_EQ(net.test(nullptr, &done, nullptr), kInvalidArgument);
  EXPECT_EQ(done, 0);
  void* comm = nullptr;
  EXPECT_EQ(net.accept(nullptr, &comm), kInvalidArgument);
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  EXPECT_EQ(net.listen(1000, handle, &out), kInvalidArgument);
  EXPECT_EQ(take_warnings().size(), 6U);
  close(net, pair);
}

// Here the receiver closes while receives are posted, and its memory is freed at once. The sender's
// requests must fail, with one line in the log.
TEST(Failures, ClosingAReceiverInFlightFailsTheSender) {
  const Net net = load();
  const Pair pair = make_pair(net);
  {
    std::vector<std::vector<char>> rooms(4, std::vector<char>(1 << 20));
    for (auto& room : rooms) ASSERT_NE(begin_receive(net, pair.receiver, room), nullptr);
    EXPECT_EQ(net.close_receive(pair.receiver), kSuccess);
  }
  // As with TCP, messages in flight when the connection closes may count as sent.
  const auto data = pattern(4 << 20, 1);
  void* request = nullptr;
  int result = kSuccess;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (result == kSuccess && std::chrono::steady_clock::now() < end) {
    result = net.send(pair.sender, data.data(), data.size(), &request);
    if (result == kSuccess && request != nullptr) result = finish(net, request);
  }
  EXPECT_EQ(result, kRemoteError);
  EXPECT_EQ(net.send(pair.sender, data.data(), data.size(), &request), kRemoteError);
  EXPECT_EQ(request, nullptr);
  EXPECT_THAT(take_warnings(), ElementsAre(HasSubstr("connection to")));
  EXPECT_EQ(net.close_send(pair.sender), kSuccess);
}

TEST(Failures, ClosingASenderInFlightFailsTheReceiver) {
  const Net net = load();
  const Pair pair = make_pair(net);
  {
    const auto data = pattern(4 << 20, 1);  // no receive is posted for it
    void* request = nullptr;
    ASSERT_EQ(net.send(pair.sender, data.data(), data.size(), &request), kSuccess);
    EXPECT_EQ(net.close_send(pair.sender), kSuccess);
  }
  std::vector<char> room(4 << 20);
  void* request = nullptr;
  int result = net.receive(pair.receiver, room.data(), room.size(), &request);
  if (result == kSuccess) result = finish(net, request);
  EXPECT_EQ(result, kRemoteError);
  EXPECT_THAT(take_warnings(), ElementsAre(HasSubstr("connection accepted at")));
  EXPECT_EQ(net.close_receive(pair.receiver), kSuccess);
}

TEST(Failures, ASenderMayCloseBeforeItsLastMessageIsTaken) {
  const Net net = load();
  const Pair pair = make_pair(net);
  ASSERT_TRUE(send_stream(net, pair.sender, 3, 1000, 3));
  EXPECT_EQ(net.close_send(pair.sender), kSuccess);
  EXPECT_TRUE(receive_stream(net, pair.receiver, 3, 1000, 3));
  EXPECT_EQ(net.close_receive(pair.receiver), kSuccess);
  EXPECT_EQ(take_warnings(), std::vector<std::string>());
}

TEST(Failures, AKilledSenderIsNoticed) {
  const Net net = load();
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  ASSERT_EQ(net.listen(0, handle, &listener), kSuccess);
  Peer peer("sender that stops");
  peer.write_handle(handle);
  void* const comm = accepted(net, listener);
  ASSERT_NE(comm, nullptr);
  EXPECT_TRUE(receive_stream(net, comm, 1, 100, 1));
  peer.wait();
  std::vector<char> room(1000);
  void* const request = begin_receive(net, comm, room);
  ASSERT_NE(request, nullptr);
  peer.kill();
  EXPECT_EQ(finish(net, request), kRemoteError);
  EXPECT_EQ(take_warnings().size(), 1U);
  EXPECT_EQ(net.close_receive(comm), kSuccess);
  EXPECT_EQ(net.close_listen(listener), kSuccess);
}

TEST(Failures, AKilledReceiverIsNoticed) {
  const Net net = load();
  Peer peer("receiver that stops");
  void* const comm = connected(net, peer.read_handle());
  ASSERT_NE(comm, nullptr);
  EXPECT_TRUE(send_stream(net, comm, 1, 100, 1));
  peer.wait();
  peer.kill();
  const auto data = pattern(1 << 20, 2);
  void* const request = begin_send(net, comm, data);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(finish(net, request), kRemoteError);
  EXPECT_EQ(take_warnings().size(), 1U);
  EXPECT_EQ(net.close_send(comm), kSuccess);
}

}  // namespace
}  // namespace nccl_net_test
