#include "tcp/cubic.h"
#include "support/time_units.h"

#include <cmath>

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

using testing::kMs;

TEST(FloorCubeRoot, IsTheGreatestWhoseCubeFits) {
  for (const std::uint64_t root : {0ull, 1ull, 2ull, 999ull, 1'000'003ull, (1ull << 42) - 1}) {
    const Wide cube = Wide{root} * root * root;
    EXPECT_EQ(floor_cube_root(cube), root);
    if (root > 0) {
      EXPECT_EQ(floor_cube_root(cube - 1), root - 1);
    }
  }
}

TEST(Cubic, SlowStartAddsWhatArrived) {
  Cubic cubic(10);
  cubic.on_ack(0, 10, 20 * kMs);
  EXPECT_EQ(cubic.window(), 20u);
}

TEST(Cubic, CongestionTakesThreeTenths) {
  Cubic cubic(1000);
  cubic.on_congestion();
  EXPECT_EQ(cubic.threshold(), 700u);
}

TEST(Cubic, SlowStartEndsAtTheThreshold) {
  Cubic cubic(100);
  cubic.on_congestion();
  cubic.set_window(1);
  cubic.on_ack(0, 69, 20 * kMs);
  EXPECT_EQ(cubic.window(), 70u);
  cubic.on_ack(0, 7, 20 * kMs);
  EXPECT_LE(cubic.window(), 71u);
}

// Returns the window `seconds` after a reduction from `maximum`, in segments. The whole window is
// acknowledged in each round trip.
std::uint32_t window_after(std::uint32_t maximum, double seconds, std::int64_t rtt_ns) {
  Cubic cubic(maximum);
  cubic.on_congestion();
  cubic.set_window(cubic.threshold());
  const auto end_ns = static_cast<std::int64_t>(seconds * 1e9);
  std::uint32_t owed = 0;  // sixteenths of a segment
  for (std::int64_t now_ns = 0; now_ns <= end_ns; now_ns += rtt_ns / 16) {
    owed += cubic.window();
    cubic.on_ack(now_ns, owed / 16, rtt_ns);
    owed %= 16;
  }
  return cubic.window();
}

TEST(Cubic, GrowsAlongTheCubicFunction) {
  const double maximum = 10'000;
  const double plateau_s = std::cbrt(maximum * 0.3 / 0.4);
  for (const double seconds : {5.0, 10.0, 20.0, 25.0}) {
    const double expected = maximum + 0.4 * std::pow(seconds - plateau_s, 3);
    EXPECT_NEAR(window_after(10'000, seconds, 100 * kMs), expected, 0.01 * maximum) << seconds;
  }
}

TEST(Cubic, IsAsFastAsRenoWhereTheCubicFunctionIsSlow) {
  // There are 100 round trips of 1 ms. In each the window grows by 0.529 segments, until it reaches
  // the old maximum after 57 round trips. From then on it grows by 1 segment in each.
  const double expected = 100 + (100 - 30 / (9.0 / 17));
  EXPECT_NEAR(window_after(100, 0.1, kMs), expected, 3);
}

TEST(Cubic, FastConvergenceRemembersLess) {
  // After two reductions in a row, the second maximum is 0.85 of 700, so growth levels off near
  // 595.
  Cubic cubic(1000);
  cubic.on_congestion();
  cubic.set_window(cubic.threshold());
  cubic.on_congestion();
  cubic.set_window(cubic.threshold());
  EXPECT_EQ(cubic.window(), 490u);
  std::uint32_t before = 0;
  for (std::int64_t ms = 0; ms <= 6000; ms += 10) {
    cubic.on_ack(ms * kMs, cubic.window() / 10, 100 * kMs);
    if (ms == 5000) before = cubic.window();
  }
  EXPECT_NEAR(before, 595, 12);
}

TEST(Cubic, IdleTimeHalvesTheWindowOncePerTimeout) {
  Cubic cubic(10);
  cubic.set_window(160);
  cubic.on_idle(500 * kMs, 200 * kMs, true);
  EXPECT_EQ(cubic.window(), 40u);
  cubic.on_idle(10'000 * kMs, 200 * kMs, true);
  EXPECT_EQ(cubic.window(), 10u);
}

TEST(Cubic, IdleTimeWithoutRestartChangesNothing) {
  Cubic cubic(10);
  cubic.set_window(160);
  cubic.on_idle(500 * kMs, 200 * kMs, false);
  EXPECT_EQ(cubic.window(), 160u);
}

}  // namespace
}  // namespace leeway::sim
