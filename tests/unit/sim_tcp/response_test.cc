// Throughput of a flow against the closed forms: CUBIC's response function, a full line, a fair
// share.
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "unit/sim_tcp/tcp_path.h"

namespace leeway::sim {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Mean window in segments: RFC 9438 section 5.1 with C = 0.4 and beta = 0.7, or where that is less,
// an AIMD flow of the same rate as Reno (section 5.1's comparison; Mathis).
double expected_window(double loss, double rtt_s) {
  return std::max(1.054 * std::pow(rtt_s / loss, 0.75), std::sqrt(1.5 / loss));
}

// Mean window of a flow whose packets are lost by `losses`, measured after a warm-up.
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
      const double expected = expected_window(loss, rtt_s);
      const double window = measured_window(every, rtt_s, 1, 400);
      std::printf("loss %g rtt %g: window %.1f, expected %.1f, ratio %.2f\n", loss, rtt_s, window,
                  expected, window / expected);
      EXPECT_NEAR(window / expected, 1, 0.2);
    }
  }
}

TEST(TcpResponse, RandomLossesRandom) {
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    for (const double rtt_s : {0.01, 0.03, 0.1}) {
      const double expected = expected_window(loss, rtt_s);
      const double window = measured_window(RandomLoss{loss, 0}, rtt_s, 1, 400);
      std::printf("random loss %g rtt %g: window %.1f, expected %.1f, ratio %.2f\n", loss, rtt_s,
                  window, expected, window / expected);
    }
  }
}

}  // namespace
}  // namespace leeway::sim
