// Tests whether the variance of losses shows that they come in bursts.
#include "protocol/loss_bursts.h"

#include <gtest/gtest.h>

#include <random>

namespace leeway::protocol {
namespace {

// Returns the dispersion (variance over mean) of a Gilbert chain's losses, with a report for every
// 16 datagrams.
double dispersion_of(double loss, double burst, int datagrams, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform;
  const double enters = burst == 1.0 ? loss : loss / (burst * (1.0 - loss));
  LossBursts bursts;
  bool lost = false;
  for (int i = 0; i < datagrams; i += 16) {
    std::int32_t missing = 0;
    for (int j = 0; j < 16; ++j) {
      lost = uniform(random) < (lost && burst > 1.0 ? 1.0 - 1.0 / burst : enters);
      missing += lost;
    }
    bursts.note(16, missing, loss);
  }
  return bursts.dispersion();
}

TEST(LossBursts, LossesByThemselvesAreNone) {
  for (unsigned seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(dispersion_of(0.1, 1.0, 1 << 16, seed), 1.0) << seed;
}

// With bursts of 8, the variance is 15 times the mean in endless stretches. It is less in stretches
// of 64, because bursts cross their borders. A reading covers 32 stretches, and the test averages
// 50.
TEST(LossBursts, BurstsAreSeen) {
  double sum = 0.0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const double dispersion = dispersion_of(0.05, 8.0, 1 << 16, seed);
    EXPECT_GT(dispersion, 3.0) << seed;
    sum += dispersion;
  }
  EXPECT_NEAR(sum / 50, 11.0, 2.0);
}

TEST(LossBursts, NothingIsSaidBeforeEnoughWasSeen) {
  EXPECT_EQ(dispersion_of(0.05, 8.0, 64 * 31, 1), 1.0);
  EXPECT_EQ(dispersion_of(0.0, 1.0, 1 << 16, 1), 1.0);
}

}  // namespace
}  // namespace leeway::protocol
