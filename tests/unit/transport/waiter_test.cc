#include "transport/waiter.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

// A test that waits this long counts as hanging.
constexpr Duration kForever = 60s;

class WaiterWait : public testing::Test {
 protected:
  WaiterWait() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sockets_), 0);
    EXPECT_TRUE(waiter_.open(sockets_[0]).ok());
  }
  ~WaiterWait() override {
    close(sockets_[0]);
    close(sockets_[1]);
  }
  static Duration timed(auto&& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::steady_clock::now() - start;
  }

  int sockets_[2] = {-1, -1};
  Waiter waiter_;
};

TEST_F(WaiterWait, LastsUntilTheTimeout) {
  EXPECT_GE(timed([&] { waiter_.wait(2ms, false); }), Duration(2ms));
}

TEST_F(WaiterWait, ANegativeTimeoutOnlyLooks) {
  EXPECT_LT(timed([&] { waiter_.wait(-1s, false); }), kForever / 2);
}

TEST_F(WaiterWait, EndsWhenADatagramIsHere) {
  ASSERT_EQ(write(sockets_[1], "x", 1), 1);
  EXPECT_LT(timed([&] { waiter_.wait(kForever, false); }), kForever / 2);
}

TEST_F(WaiterWait, EndsWhenWritableOnlyIfAsked) {
  EXPECT_LT(timed([&] { waiter_.wait(kForever, true); }), kForever / 2);
  EXPECT_GE(timed([&] { waiter_.wait(1ms, false); }), Duration(1ms));
}

TEST_F(WaiterWait, EndsWhenAnyOfSeveralHandlesIsReadable) {
  const int event = eventfd(0, EFD_NONBLOCK);
  const int handles[] = {sockets_[0], event};
  Waiter waiter;
  ASSERT_TRUE(waiter.open(handles).ok());
  EXPECT_GE(timed([&] { waiter.wait(1ms, false); }), Duration(1ms));
  ASSERT_EQ(eventfd_write(event, 1), 0);
  EXPECT_LT(timed([&] { waiter.wait(kForever, false); }), kForever / 2);
  close(event);
}

TEST_F(WaiterWait, ForgottenHandlesEndNoWait) {
  ASSERT_EQ(write(sockets_[1], "x", 1), 1);
  waiter_.forget_handles();
  EXPECT_GE(timed([&] { waiter_.wait(1ms, false); }), Duration(1ms));
  waiter_.wake();
  EXPECT_LT(timed([&] { waiter_.wait(kForever, false); }), kForever / 2);
}

TEST_F(WaiterWait, AWakeBeforehandEndsTheNextWaitAndThatOneOnly) {
  waiter_.wake();
  waiter_.wake();
  EXPECT_LT(timed([&] { waiter_.wait(kForever, false); }), kForever / 2);
  EXPECT_GE(timed([&] { waiter_.wait(1ms, false); }), Duration(1ms));
}

TEST_F(WaiterWait, NoWakeOfAnotherThreadIsLost) {
  constexpr int kRounds = 2000;
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};
  std::thread waker([&] {
    for (int round = 1; round <= kRounds; ++round) {
      asked = round;
      waiter_.wake();
      while (answered.load() < round) std::this_thread::yield();
    }
  });
  // A lost wake() would keep both threads for a minute.
  const Duration taken = timed([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) waiter_.wait(kForever, false);
      answered = round;
    }
  });
  waker.join();
  EXPECT_LT(taken, kForever / 2);
}

}  // namespace
}  // namespace leeway::transport
