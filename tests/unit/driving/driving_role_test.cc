#include "driving/driving_role.h"

#include <gtest/gtest.h>

namespace leeway::driving {
namespace {

using namespace std::chrono_literals;

class SilentTransport final : public DatagramTransport {
 public:
  std::string_view name() const override { return "silent"; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override { return trains.size(); }
  std::size_t receive(std::span<Received>) override { return 0; }
  void wait(Duration) override {}
  void wake() override {}
  TransportCounters counters() const override { return {}; }

 private:
  TransportLimits limits_{1472, 65507, 64, 256, 1u << 20};
};

// An operation has begun, so the background thread has the role. The test's own thread plays the
// background thread, too.
class DrivingRoleTest : public ::testing::Test {
 protected:
  void SetUp() override { drive_in_background(); }
  void drive_in_background() {
    role_.nudge();
    ASSERT_TRUE(role_.acquire_in_pause());
  }
  // Returns true if the caller got the role.
  bool poll_after(Duration pause) { return role_.acquire_to_poll(now_ = now_ + pause); }

  SilentTransport transport_;
  DrivingRole role_{transport_};
  Instant now_{1'000'000'000};
};

TEST_F(DrivingRoleTest, WhoAsksDenselyGetsItFromTheBackground) {
  for (int i = 0; i < 16; ++i) {
    EXPECT_FALSE(poll_after(i == 0 ? 1s : 100us));
    EXPECT_FALSE(role_.recalled()) << i;
  }
  EXPECT_FALSE(poll_after(100us));
  EXPECT_TRUE(role_.recalled());
  EXPECT_TRUE(role_.polled());
  role_.release_to_callers();
  EXPECT_TRUE(poll_after(10us));
  role_.release();
}

TEST_F(DrivingRoleTest, WhoAsksNowAndThenLeavesItToTheBackground) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(poll_after(i % 15 == 0 ? 101us : 100us));
  EXPECT_FALSE(role_.recalled());
  EXPECT_FALSE(role_.polled());
}

// If a poller goes away, later operations must be left to the background thread.
TEST_F(DrivingRoleTest, AfterAPauseTheBackgroundHasItUntilSomebodyAsksDenselyAgain) {
  for (int i = 0; i < 20; ++i) (void)poll_after(1us);
  role_.release_to_callers();
  drive_in_background();
  EXPECT_FALSE(role_.polled());
  EXPECT_FALSE(role_.recalled());
  for (int i = 0; i < 16; ++i) (void)poll_after(1us);
  EXPECT_TRUE(role_.recalled());
}

}  // namespace
}  // namespace leeway::driving
