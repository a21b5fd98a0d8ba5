// Compares a flow's throughput with closed forms: CUBIC's response function, a full line, and a
// fair share.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/time_units.h"
#include "unit/sim_tcp/tcp_path.h"

namespace leeway::sim {
namespace {

using testing::kSecond;

// Returns the mean window in segments by RFC 9438, section 5.1, with C = 0.4 and beta = 0.7, or
// that of Reno (same section; Mathis) if it is larger.
double expected_window(double loss, double rtt_s) {
  return std::max(1.054 * std::pow(rtt_s / loss, 0.75), std::sqrt(1.5 / loss));
}

// Measures a flow's mean window under `losses` after a warm-up.
double measured_window(const LossOptions& losses, double rtt_s, std::uint64_t seed,
                       std::int64_t seconds) {
  PathOptions options;
  options.one_way_ns = static_cast<std::int64_t>(rtt_s * 5e8);
  options.losses = {losses};
  options.seed = seed;
  TcpPath path(options);
  path.add({}).send({0}, TcpFlow::kEndless);
  const std::int64_t warm_up_ns = seconds * kSecond / 4;
  path.run_until(warm_up_ns);
  const std::uint64_t before = path.delivered(0);
  path.run_until(seconds * kSecond);
  const double segments = static_cast<double>(path.delivered(0) - before) / 1448;
  return segments * rtt_s / (static_cast<double>(seconds) * 0.75);
}

TEST(TcpResponse, FollowsCubicsFormulaWhereEveryNthPacketIsLost) {
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    for (const double rtt_s : {0.01, 0.03, 0.1}) {
      const EveryLoss every{static_cast<std::uint64_t>(1 / loss)};
      const double ratio = measured_window(every, rtt_s, 1, 300) / expected_window(loss, rtt_s);
      EXPECT_NEAR(ratio, 1, 0.2) << "loss " << loss << " round trip " << rtt_s;
    }
  }
}

// The formula is for evenly spaced losses. With random losses, the mean is up to a quarter higher.
TEST(TcpResponse, IsNearCubicsFormulaWhereLossesAreRandom) {
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    for (const double rtt_s : {0.01, 0.03, 0.1}) {
      const double window = measured_window(RandomLoss{loss, 0}, rtt_s, 1, 300);
      const double ratio = window / expected_window(loss, rtt_s);
      EXPECT_NEAR(ratio, 1.1, 0.2) << "loss " << loss << " round trip " << rtt_s;
    }
  }
}

TEST(TcpResponse, FillsACleanLine) {
  for (const std::uint64_t mbps : {10, 100, 500}) {
    PathOptions options;
    options.bits_per_second = mbps * 1'000'000;
    options.one_way_ns = 10'000'000;
    options.queue_bytes = mbps * 2500;  // bytes that the line sends in 20 ms
    TcpPath path(options);
    path.add({}).send({0}, TcpFlow::kEndless);
    path.run_until(10 * kSecond);
    const std::uint64_t before = path.delivered(0);
    path.run_until(40 * kSecond);
    const double share = static_cast<double>(path.delivered(0) - before) * 8 / 30 / 1e6 /
                         (static_cast<double>(mbps) * 1448 / 1500);
    EXPECT_GT(share, 0.95) << mbps;
    EXPECT_LE(share, 1.0001) << mbps;
  }
}

TEST(TcpResponse, TwoFlowsShareFairly) {
  PathOptions options;
  options.bits_per_second = 100'000'000;
  options.one_way_ns = 10'000'000;
  options.queue_bytes = 250'000;
  TcpPath path(options);
  path.add({}).send({0}, TcpFlow::kEndless);
  path.add({});
  path.at(5 * kSecond, [&](Instant now) { path.flow(1).send(now, TcpFlow::kEndless); });
  path.run_until(20 * kSecond);
  const auto first = static_cast<double>(path.delivered(0));
  const auto second = static_cast<double>(path.delivered(1));
  path.run_until(120 * kSecond);
  const double a = static_cast<double>(path.delivered(0)) - first;
  const double b = static_cast<double>(path.delivered(1)) - second;
  const double jain = (a + b) * (a + b) / (2 * (a * a + b * b));
  EXPECT_GT(jain, 0.9) << a << " and " << b;
}

}  // namespace
}  // namespace leeway::sim
