#include "tcp/tcp_receiver.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TcpOptions no_quick_acks() {
  TcpOptions options;
  options.quick_acks = 0;
  return options;
}

class Receiver : public TcpReceiver {
 public:
  Receiver() : TcpReceiver(no_quick_acks()) {}
  std::uint64_t take(std::uint64_t number, std::int64_t now_ns = 0) {
    return on_segment({now_ns}, {.number = number, .bytes = 100}).bytes;
  }
};

TEST(TcpReceiver, DeliversInOrderOnly) {
  Receiver receiver;
  EXPECT_EQ(receiver.take(0), 100u);
  EXPECT_EQ(receiver.take(2), 0u);
  EXPECT_EQ(receiver.take(3), 0u);
  EXPECT_EQ(receiver.take(1), 300u);
  EXPECT_EQ(receiver.take(1), 0u);
}

TEST(TcpReceiver, AcknowledgesEverySecondSegmentOrAfterTheDelay) {
  Receiver receiver;
  receiver.take(0, 1000);
  EXPECT_FALSE(receiver.ack_due({1000}));
  EXPECT_EQ(receiver.next_wake().ns, 1000 + TcpOptions{}.delayed_ack_ns);
  receiver.take(1, 2000);
  EXPECT_TRUE(receiver.ack_due({2000}));
  EXPECT_EQ(receiver.take_ack().next, 2u);
  EXPECT_FALSE(receiver.ack_due({2000}));
}

TEST(TcpReceiver, AcknowledgesAtOnceWhatIsOutOfOrderAndWhatFillsAHole) {
  Receiver receiver;
  receiver.take(1);
  EXPECT_TRUE(receiver.ack_due({0}));
  (void)receiver.take_ack();
  receiver.take(0);
  EXPECT_TRUE(receiver.ack_due({0}));
  EXPECT_EQ(receiver.take_ack().next, 2u);
}

TEST(TcpReceiver, FirstSegmentsAreAcknowledgedOneByOne) {
  TcpOptions options;
  options.quick_acks = 1;
  TcpReceiver receiver(options);
  (void)receiver.on_segment({0}, {.number = 0, .bytes = 100});
  EXPECT_TRUE(receiver.ack_due({0}));
  (void)receiver.take_ack();
  (void)receiver.on_segment({0}, {.number = 1, .bytes = 100});
  EXPECT_FALSE(receiver.ack_due({0}));
}

TEST(TcpReceiver, TellsTheThreeBlocksThatChangedLast) {
  Receiver receiver;
  for (const std::uint64_t number : {2, 4, 6, 8, 9}) receiver.take(number);
  TcpAck ack = receiver.take_ack();
  EXPECT_EQ(ack.next, 0u);
  EXPECT_EQ(ack.sacked[0], (SackBlock{8, 10}));
  EXPECT_EQ(ack.sacked[1], (SackBlock{6, 7}));
  EXPECT_EQ(ack.sacked[2], (SackBlock{4, 5}));
  receiver.take(3);  // joins 2 and 4
  ack = receiver.take_ack();
  EXPECT_EQ(ack.sacked[0], (SackBlock{2, 5}));
  EXPECT_EQ(ack.sacked[1], (SackBlock{8, 10}));
  EXPECT_EQ(ack.sacked[2], (SackBlock{6, 7}));
}

TEST(TcpReceiver, SaysWhenASegmentCameTwice) {
  Receiver receiver;
  receiver.take(0);
  receiver.take(2);
  EXPECT_FALSE(receiver.take_ack().duplicate);
  receiver.take(0);
  EXPECT_TRUE(receiver.take_ack().duplicate);
  receiver.take(2);
  EXPECT_TRUE(receiver.take_ack().duplicate);
  receiver.take(3);
  EXPECT_FALSE(receiver.take_ack().duplicate);
}

TEST(TcpReceiver, EchoesAMarkUntilTheSenderReduced) {
  TcpOptions options;
  options.ecn = true;
  TcpReceiver receiver(options);
  (void)receiver.on_segment({0}, {.number = 0, .bytes = 100, .marked = true});
  EXPECT_TRUE(receiver.take_ack().congestion);
  (void)receiver.on_segment({0}, {.number = 1, .bytes = 100});
  EXPECT_TRUE(receiver.take_ack().congestion);
  (void)receiver.on_segment({0}, {.number = 2, .bytes = 100, .reduced = true});
  EXPECT_FALSE(receiver.take_ack().congestion);
}

}  // namespace
}  // namespace leeway::sim
