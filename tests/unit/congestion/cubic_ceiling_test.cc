#include "congestion/cubic_ceiling.h"

#include <cmath>

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

constexpr Duration kRtt = std::chrono::milliseconds(20);

Instant at(double seconds) {
  return Instant{1'000'000'000 + static_cast<std::int64_t>(seconds * 1e9)};
}

TEST(CubicCeiling, ACutLeavesSeventyPercent) {
  CubicCeiling ceiling;
  ceiling.begin(at(0), 1000);
  ceiling.cut(at(0), 1000);
  EXPECT_NEAR(ceiling.packets(), 700, 1e-9);
}

TEST(CubicCeiling, ACutIsOfWhatWasReallyUnderWay) {
  CubicCeiling ceiling;
  ceiling.begin(at(0), 1000);
  ceiling.cut(at(0), 500);
  EXPECT_NEAR(ceiling.packets(), 350, 1e-9);
}

// RFC 9438, 4.2: the window is back at the maximum after K = cbrt((W_max - window) / C).
TEST(CubicCeiling, IsBackAtItsMaximumAfterK) {
  CubicCeiling ceiling;
  ceiling.begin(at(0), 10'000);
  ceiling.cut(at(0), 10'000);
  const double k = std::cbrt(3000 / 0.4);
  double t = 0;
  for (; t < k; t += 0.02) ceiling.on_round(at(t), kRtt, true);
  EXPECT_NEAR(ceiling.packets(), 10'000, 30);
}

TEST(CubicCeiling, DoesNotGrowUnused) {
  CubicCeiling ceiling;
  ceiling.begin(at(0), 1000);
  ceiling.cut(at(0), 1000);
  double t = 0;
  for (; t < 10; t += 0.02) ceiling.on_round(at(t), kRtt, false);
  ceiling.on_round(at(t), kRtt, true);
  EXPECT_NEAR(ceiling.packets(), 700, 5);
}

TEST(CubicCeiling, NeverFallsBelowFourPackets) {
  CubicCeiling ceiling;
  ceiling.begin(at(0), 5);
  for (int i = 0; i < 10; ++i) ceiling.cut(at(i), 1);
  EXPECT_EQ(ceiling.packets(), 4);
}

}  // namespace
}  // namespace leeway::congestion
