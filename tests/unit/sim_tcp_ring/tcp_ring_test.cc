#include "endpoint/tcp_ring.h"

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "unit/sim_tcp_ring/ring_world.h"

namespace leeway::sim {
namespace {

std::string measured_scenario(double loss, const std::string& queue = "") {
  return "ranks: 4 topology { star {} } operation { delivery { kind: exact deadline_ms: 60000 } } "
         "link { tier: uplink rate_mbps: 500 delay_ms { fixed: 10 } " +
         queue + " loss { random { p: " + std::to_string(loss) + " } } }";
}

double median_ms(double loss, int rounds) {
  RingWorld world(measured_scenario(loss));
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    std::int64_t longest_ns = 0;
    for (const CallResult& result : world.call(CallKind::all_reduce, 4 << 20)) {
      EXPECT_TRUE(result.status.ok()) << result.status.c_str();
      longest_ns = std::max(longest_ns, result.done_ns - result.submitted_ns);
    }
    times.push_back(static_cast<double>(longest_ns) / 1e6);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds) / 2];
}

// Medians of a real kernel's TCP under Gloo's ring: 500 Mb/s uplinks, 20 ms round trip, 4 ranks,
// 4 MiB.
TEST(TcpRing, MediansAreThoseOfRealTcp) {
  struct Point {
    double loss;
    double measured_ms;
  };
  for (const Point point : {Point{0, 209}, {0.001, 293}, {0.01, 463}, {0.05, 723}, {0.1, 1334}}) {
    const double ms = median_ms(point.loss, 101);
    std::printf("loss %g: median %.0f ms, measured %.0f, ratio %.2f\n", point.loss, ms,
                point.measured_ms, ms / point.measured_ms);
    EXPECT_NEAR(ms / point.measured_ms, 1, 0.5);
  }
}

}  // namespace
}  // namespace leeway::sim
