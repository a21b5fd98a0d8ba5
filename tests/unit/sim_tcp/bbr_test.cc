// Compares BBR (version 1) with published results. It fills a line with up to about 15 % random
// loss and collapses beyond 20 % (Cardwell et al., "BBR: Congestion-Based Congestion Control",
// 2016, figure 8). It crowds CUBIC out of short queues and yields in deep ones (Hock et al.,
// "Experimental evaluation of BBR", 2017).
#include <gtest/gtest.h>

#include "support/time_units.h"
#include "unit/sim_tcp/tcp_path.h"

namespace leeway::sim {
namespace {

using testing::kSecond;

constexpr double kLineBits = 100e6;

// A line of 100 Mb/s with a round trip of 20 ms. `queue` is in units of their product, 250 kB.
PathOptions line_of(double queue, double loss) {
  PathOptions options;
  options.bits_per_second = static_cast<std::uint64_t>(kLineBits);
  options.one_way_ns = 10'000'000;
  options.queue_bytes = static_cast<std::uint64_t>(250'000 * queue);
  if (loss > 0) options.losses = {RandomLoss{loss, 0}};
  return options;
}

TcpOptions bbr() {
  TcpOptions options;
  options.congestion = TcpCongestion::bbr;
  return options;
}

// Returns the share of the line's rate that data and headers use from 3 s to 23 s.
double share_alone(double loss) {
  TcpPath path(line_of(1, loss));
  path.add(bbr()).send({0}, TcpFlow::kEndless);
  path.run_until(3 * kSecond);
  const std::uint64_t before = path.delivered(0);
  path.run_until(23 * kSecond);
  return static_cast<double>(path.delivered(0) - before) * 8 / 20 / kLineBits * 1500 / 1448;
}

// Returns BBR's part of what BBR and a CUBIC flow deliver from 10 s to 70 s.
double share_beside_cubic(double queue) {
  TcpPath path(line_of(queue, 0));
  path.add(bbr()).send({0}, TcpFlow::kEndless);
  path.add({}).send({0}, TcpFlow::kEndless);
  path.run_until(10 * kSecond);
  const std::uint64_t ours = path.delivered(0);
  const std::uint64_t theirs = path.delivered(1);
  path.run_until(70 * kSecond);
  const auto a = static_cast<double>(path.delivered(0) - ours);
  const auto b = static_cast<double>(path.delivered(1) - theirs);
  EXPECT_GT((a + b) * 8 / 60, 0.9 * kLineBits);
  return a / (a + b);
}

TEST(Bbr, FillsALineWhateverItLosesUpToFifteenPercent) {
  for (const double loss : {0.0, 0.01, 0.05, 0.1, 0.15}) {
    EXPECT_GT(share_alone(loss), 0.9 * (1 - loss)) << loss;
  }
}

TEST(Bbr, LosesGroundAtTwentyPercentAndCollapsesBeyond) {
  EXPECT_LT(share_alone(0.2), 0.9 * 0.8);
  EXPECT_LT(share_alone(0.25), 0.5 * 0.75);
}

TEST(Bbr, CrowdsCubicOutOfAShortQueueAndYieldsInADeepOne) {
  EXPECT_GT(share_beside_cubic(0.2), 0.8);
  EXPECT_NEAR(share_beside_cubic(1), 0.55, 0.2);
  EXPECT_LT(share_beside_cubic(5), 0.45);
}

TEST(Bbr, TwoShareALine) {
  TcpPath path(line_of(1, 0));
  path.add(bbr()).send({0}, TcpFlow::kEndless);
  path.add(bbr());
  path.at(5 * kSecond, [&](Instant now) { path.flow(1).send(now, TcpFlow::kEndless); });
  path.run_until(30 * kSecond);
  const std::uint64_t first = path.delivered(0);
  const std::uint64_t second = path.delivered(1);
  path.run_until(60 * kSecond);
  const auto a = static_cast<double>(path.delivered(0) - first);
  const auto b = static_cast<double>(path.delivered(1) - second);
  EXPECT_GT((a + b) * (a + b) / (2 * (a * a + b * b)), 0.9) << a << " and " << b;
}

// BBR's window is two BDP, so it makes a queue of one round trip and no loss in a deep queue.
TEST(Bbr, DoesNotFillADeepQueue) {
  TcpPath path(line_of(20, 0));
  path.add(bbr()).send({0}, TcpFlow::kEndless);
  path.run_until(20 * kSecond);
  EXPECT_LT(path.flow(0).sender().rtt().smoothed_ns(), 45'000'000);
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 0u);
}

}  // namespace
}  // namespace leeway::sim
