// Tests whole flows: which segments are repeated and when, and that nothing is missing or doubled
// at the end.
#include "tcp/tcp_flow.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

#include "support/allocations.h"
#include "support/time_units.h"
#include "unit/sim_tcp/tcp_path.h"

namespace leeway::sim {
namespace {

using testing::kMs;
using testing::kSecond;

constexpr std::uint64_t kSegment = 1448;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 38) - 1;

// Returns options with a round trip of 10 ms, known from the handshake.
TcpOptions known_rtt() {
  TcpOptions options;
  options.handshake_rtt_ns = 10 * kMs;
  return options;
}

// Loses the first copies of these segments.
void lose_first_copies(TcpPath& path, std::set<std::uint64_t> numbers) {
  path.filter = [numbers](Instant, const Packet& packet) mutable {
    if (packet.traffic != Traffic::data) return false;
    return numbers.erase(packet.word & kNumberMask) > 0;
  };
}

TEST(TcpFlow, DeliversEveryByteOnceWhateverIsLost) {
  for (const double loss : {0.0, 0.01, 0.1, 0.3}) {
    PathOptions options;
    options.losses = {RandomLoss{loss, 0}};
    options.ack_losses = {RandomLoss{loss, 0}};
    options.jitter_ns = 2 * kMs;
    TcpPath path(options);
    const std::uint64_t bytes = 300 * kSegment + 77;
    path.add(known_rtt()).send({0}, bytes);
    path.run_until(3'600 * kSecond);
    EXPECT_EQ(path.delivered(0), bytes) << loss;
    EXPECT_EQ(path.flow(0).sender().outstanding(), 0u) << loss;
  }
}

TEST(TcpFlow, LoneLossIsRepairedInOneRoundTrip) {
  TcpPath path({});
  lose_first_copies(path, {3});
  path.add(known_rtt()).send({0}, 10 * kSegment);
  ASSERT_TRUE(path.run_until_delivered(0, 10 * kSegment, kSecond));
  // The segment takes 5 ms to the receiver, the news of its loss 5 ms back, and the repair 5 ms.
  EXPECT_EQ(path.now().ns, 15 * kMs);
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 1u);
  EXPECT_EQ(path.flow(0).sender().counters().reductions, 1u);
  EXPECT_EQ(path.flow(0).counters().repaired, 1u);
}

TEST(TcpFlow, LossesOfOneRoundTripReduceTheWindowOnce) {
  TcpPath path({});
  lose_first_copies(path, {1, 3, 5});
  path.add(known_rtt()).send({0}, 10 * kSegment);
  ASSERT_TRUE(path.run_until_delivered(0, 10 * kSegment, kSecond));
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 3u);
  EXPECT_EQ(path.flow(0).sender().counters().reductions, 1u);
}

TEST(TcpFlow, WindowIsLedDownWhileTheLossIsRepaired) {
  TcpPath path({});
  lose_first_copies(path, {150});  // the first of a round of 160
  path.add(known_rtt()).send({0}, TcpFlow::kEndless);
  path.run_until(60 * kMs - 1);  // the loss is found at 50 ms, and the repair is known at 60
  EXPECT_EQ(path.flow(0).sender().counters().reductions, 1u);
  EXPECT_NEAR(path.flow(0).sender().window(), 0.7 * 160, 12);
}

TEST(TcpFlow, LostTailIsFoundByAProbe) {
  TcpPath path({});
  lose_first_copies(path, {9});
  path.add(known_rtt()).send({0}, 10 * kSegment);
  ASSERT_TRUE(path.run_until_delivered(0, 10 * kSegment, kSecond));
  EXPECT_EQ(path.flow(0).sender().counters().probes, 1u);
  EXPECT_EQ(path.flow(0).sender().counters().timeouts, 0u);
  // The last acknowledgement comes at 10 ms, or later if it is delayed. One segment is outstanding
  // then, so the probe waits for 2 SRTT and 200 ms, but no longer than a timeout.
  EXPECT_LT(path.now().ns, 300 * kMs);
}

TEST(TcpFlow, SilenceDoublesTheTimeoutFromTwoHundredMilliseconds) {
  TcpPath path({});
  std::vector<std::int64_t> times_ms;
  path.filter = [&](Instant now, const Packet&) {
    times_ms.push_back(now.ns / kMs);
    return true;
  };
  path.add(known_rtt()).send({0}, kSegment);
  path.run_until(8 * kSecond);
  // The segment is sent, probed when a timeout is due (10 + 200 ms), and repeated after pauses of
  // 210, 420, ... ms.
  const std::vector<std::int64_t> expected = {0, 210, 420, 840, 1680, 3360, 6720};
  EXPECT_EQ(times_ms, expected);
}

TEST(TcpFlow, RepairIsRepairedWithoutATimeout) {
  PathOptions options;
  options.bits_per_second = 100'000'000;
  TcpPath path(options);
  int copies = 0;
  path.filter = [&](Instant, const Packet& packet) {
    const bool third = packet.traffic == Traffic::data && (packet.word & kNumberMask) == 3;
    return third && ++copies <= 2;
  };
  path.add(known_rtt()).send({0}, 200 * kSegment);
  ASSERT_TRUE(path.run_until_delivered(0, 200 * kSegment, kSecond));
  EXPECT_EQ(path.flow(0).sender().counters().timeouts, 0u);
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 2u);
}

TEST(TcpFlow, ReorderingWithinAQuarterRoundTripRepeatsNothing) {
  TcpPath path({});
  bool held = false;
  path.filter = [&](Instant, const Packet& packet) {
    if (held || packet.traffic != Traffic::data || (packet.word & kNumberMask) != 8) return false;
    held = true;
    const Packet late = packet;
    path.at(path.now().ns + 7 * kMs, [&path, late](Instant now) {
      path.flow(0).on_packet(now, late);  // 2 ms behind the others
    });
    return true;
  };
  path.add(known_rtt()).send({0}, 10 * kSegment);
  ASSERT_TRUE(path.run_until_delivered(0, 10 * kSegment, kSecond));
  path.run_until(kSecond);
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 0u);
}

TEST(TcpFlow, MarksReduceTheWindowWithoutLosses) {
  PathOptions options;
  options.bits_per_second = 20'000'000;
  options.mark_bytes = 30'000;
  TcpPath path(options);
  TcpOptions ecn = known_rtt();
  ecn.ecn = true;
  path.add(ecn).send({0}, TcpFlow::kEndless);
  path.run_until(20 * kSecond);
  EXPECT_GT(path.flow(0).sender().counters().reductions, 5u);
  EXPECT_EQ(path.flow(0).sender().counters().repeated, 0u);
  EXPECT_GT(static_cast<double>(path.delivered(0)) * 8 / 20, 0.9 * 20e6 * 1448 / 1500);
}

TEST(TcpFlow, DamagedSegmentsAreLostOnes) {
  TcpPath path({});
  TcpFlow& flow = path.add(known_rtt());
  Packet packet{.from = 0, .to = 1, .bytes = 1500};
  packet.corrupt = true;
  flow.on_packet({0}, packet);
  EXPECT_EQ(path.delivered(0), 0u);
  packet.corrupt = false;
  flow.on_packet({0}, packet);
  EXPECT_EQ(path.delivered(0), kSegment);
}

TEST(TcpFlow, NothingIsAllocatedInASteadyState) {
  PathOptions options;
  options.bits_per_second = 100'000'000;
  options.losses = {RandomLoss{0.001, 0}};
  TcpPath path(options);
  path.add(known_rtt()).send({0}, TcpFlow::kEndless);
  path.run_until(20 * kSecond);
  const std::uint64_t segments = path.flow(0).sender().counters().segments;
  const std::size_t before = allocations_so_far();
  path.run_until(40 * kSecond);
  EXPECT_GT(path.flow(0).sender().counters().segments, segments + 10'000);
  EXPECT_LE(allocations_so_far() - before, 4u);  // only the calls of run_until allocate
}

}  // namespace
}  // namespace leeway::sim
