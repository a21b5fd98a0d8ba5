#include "endpoint/tcp_ring.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim_tcp_ring/ring_world.h"

namespace leeway::sim {
namespace {

// A star with 500 Mb/s uplinks and round trips of 20 ms.
std::string star(double loss, int ranks = 4, int deadline_ms = 60'000) {
  return "ranks: " + std::to_string(ranks) +
         " topology { star {} } operation { delivery { kind: exact deadline_ms: " +
         std::to_string(deadline_ms) +
         " } } link { tier: uplink rate_mbps: 500 delay_ms { fixed: 10 } loss { random { p: " +
         std::to_string(loss) + " } } }";
}

double longest_ms(const std::vector<CallResult>& results) {
  std::int64_t longest_ns = 0;
  for (const CallResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status.c_str();
    longest_ns = std::max(longest_ns, result.done_ns - result.submitted_ns);
  }
  return static_cast<double>(longest_ns) / 1e6;
}

double median_ms(double loss, int rounds) {
  RingWorld world(star(loss));
  std::vector<double> times_ms;
  for (int round = 0; round < rounds; ++round) {
    times_ms.push_back(longest_ms(world.call(CallKind::all_reduce, 4 << 20)));
  }
  const auto middle = times_ms.begin() + rounds / 2;
  std::nth_element(times_ms.begin(), middle, times_ms.end());
  return *middle;
}

// Gloo's ring takes 209 ms for 4 MiB over a real kernel's TCP.
TEST(TcpRing, LosslessAllReduceTakesAsLongAsGlooDoes) {
  EXPECT_NEAR(median_ms(0, 11) / 209, 1, 0.2);
}

// By CUBIC's response function, the window is 39 segments at 0.1 % loss, which gives 22 Mb/s. So
// 6.3 MB take 2.2 s, and sqrt(10) times as long at 1 %.
TEST(TcpRing, PacketLossMakesItAsSlowAsTcpsWindow) {
  EXPECT_NEAR(median_ms(0.001, 21), 2300, 500);
  EXPECT_NEAR(median_ms(0.01, 21), 7700, 1500);
}

TEST(TcpRing, EveryKindOfCallCompletes) {
  for (const CallKind kind : {CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather,
                              CallKind::broadcast}) {
    for (const int ranks : {1, 2, 3, 7}) {
      RingWorld world(star(0.01, ranks));
      for (const std::uint64_t bytes : {4u, 12u, 100'004u}) {
        const auto results = world.call(kind, bytes);
        for (const CallResult& result : results) {
          EXPECT_TRUE(result.status.ok()) << to_string(kind) << " of " << ranks;
          EXPECT_EQ(result.arrived, result.expected);
          EXPECT_LE(result.arrived_first, result.arrived);
        }
      }
    }
  }
}

TEST(TcpRing, SendsWhatARingSendsAndNoMore) {
  RingWorld world(star(0));
  const auto results = world.call(CallKind::all_reduce, 4 << 20);
  for (const CallResult& result : results) {
    EXPECT_EQ(result.expected, (6u * (1 << 20) + 1447) / 1448);
    EXPECT_EQ(result.arrived_first, result.expected);
    EXPECT_EQ(result.contributors_min, 4u);
    // The bytes sent include 32 bytes of TCP header a segment, an acknowledgement for every second
    // segment, and notices.
    EXPECT_NEAR(static_cast<double>(result.bytes_sent), 6.0 * (1 << 20) * 1.035, 2e5);
  }
}

TEST(TcpRing, WhatIsLostIsRepairedAndCounted) {
  RingWorld world(star(0.02));
  const auto results = world.call(CallKind::all_reduce, 1 << 20);
  for (const CallResult& result : results) {
    EXPECT_TRUE(result.status.ok());
    const double first = static_cast<double>(result.arrived_first);
    EXPECT_NEAR(first / static_cast<double>(result.expected), 0.98, 0.02);
    EXPECT_LT(result.arrived_first, result.expected);
  }
}

TEST(TcpRing, OtherKindsAreUnsupported) {
  RingWorld world(star(0));
  for (const CallResult& result : world.call(CallKind::all_to_all, 1000)) {
    EXPECT_EQ(result.status.code(), StatusCode::kUnsupported);
  }
  EXPECT_GT(longest_ms(world.call(CallKind::all_reduce, 1000)), 0);
}

TEST(TcpRing, CallsFailAtTheirDeadlineWhenARankIsDead) {
  RingWorld world(star(0, 4, 500));
  (void)world.call(CallKind::all_reduce, 1 << 20);
  world.kill(2);
  for (int round = 0; round < 3; ++round) {
    const auto results = world.call(CallKind::all_reduce, 1 << 20);
    for (const std::uint32_t rank : {0u, 1u, 3u}) {
      EXPECT_EQ(results[rank].status.code(), StatusCode::kDeadlineExceeded);
      EXPECT_EQ(results[rank].done_ns - results[rank].submitted_ns, 500'000'000);
      EXPECT_TRUE(results[rank].deadline_cut);
      EXPECT_LT(results[rank].arrived, results[rank].expected);
    }
    EXPECT_NE(results[3].status.text().find("rank 3 waits for rank 2 in all_reduce"),
              std::string_view::npos)
        << results[3].status.c_str();
  }
}

TEST(TcpRing, PausedRankDelaysEverybody) {
  RingWorld world(star(0));
  (void)world.call(CallKind::all_reduce, 1 << 20);
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.submit(rank, CallKind::all_reduce, 1 << 20);
  const std::int64_t begin_ns = world.now().ns;
  world.ring().pause(world.now(), 1);
  world.run_until(begin_ns + 3'000'000'000);
  EXPECT_EQ(world.done.size(), 4u);  // the first call is done
  world.ring().resume(world.now(), 1);
  world.run_until_done(8);
  for (std::size_t i = 4; i < 8; ++i) {
    EXPECT_TRUE(world.done[i].result.status.ok()) << world.done[i].text;
    EXPECT_GT(world.done[i].result.done_ns, begin_ns + 3'000'000'000);
  }
}

TEST(TcpRing, RingWorksAgainAfterACallFailed) {
  RingWorld world(star(0.01, 4, 2'000));
  world.ring().pause(world.now(), 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.submit(rank, CallKind::all_reduce, 1 << 20);
  world.run_until(3'000'000'000);
  world.ring().resume(world.now(), 1);
  world.run_until_done(4);
  for (const RingWorld::Done& done : world.done) {
    EXPECT_EQ(done.result.status.code(), StatusCode::kDeadlineExceeded) << done.rank;
  }
  for (int round = 0; round < 3; ++round) longest_ms(world.call(CallKind::all_reduce, 100'000));
}

// When rank 2 comes late, the others have given the call up, or are in the next one.
TEST(TcpRing, RingWorksAgainAfterARankCameTooLate) {
  RingWorld world(star(0, 4, 300));
  for (const std::uint32_t rank : {0u, 1u, 3u}) world.submit(rank, CallKind::all_reduce, 4000);
  world.run_until_done(3);
  for (const std::uint32_t rank : {0u, 1u, 3u}) world.submit(rank, CallKind::all_reduce, 4000);
  world.run_until(world.now().ns + 100'000'000);
  world.submit(2, CallKind::all_reduce, 4000);  // the first call
  world.run_until_done(7);
  EXPECT_EQ(world.done[6].result.status.code(), StatusCode::kDeadlineExceeded);
  world.submit(2, CallKind::all_reduce, 4000);  // the second call, which the others gave up, too
  world.run_until_done(8);
  longest_ms(world.call(CallKind::all_reduce, 4000));
}

// The others wait in the second call when rank 2's first call fails and rank 2 joins them.
TEST(TcpRing, OpenCallOutlivesANeighboursEarlierFailure) {
  RingWorld world(star(0, 4, 300));
  const auto others_submit = [&] {
    for (const std::uint32_t rank : {0u, 1u, 3u}) world.submit(rank, CallKind::all_reduce, 4000);
  };
  others_submit();
  world.run_until(250'000'000);
  world.ring().pause(world.now(), 2);
  world.submit(2, CallKind::all_reduce, 4000);
  world.run_until(320'000'000);
  world.ring().resume(world.now(), 2);
  world.run_until(400'000'000);
  ASSERT_EQ(world.done.size(), 3u);
  others_submit();
  world.run_until_done(4);
  EXPECT_EQ(world.now().ns, 550'000'000);
  world.submit(2, CallKind::all_reduce, 4000);
  world.run_until_done(8);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_TRUE(world.done[i].result.status.ok());
}

TEST(TcpRing, PartitionDelaysUntilItsEnd) {
  RingWorld world(star(0));
  (void)world.call(CallKind::all_reduce, 1 << 20);
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.submit(rank, CallKind::all_reduce, 1 << 20);
  const std::int64_t end_ns = world.now().ns + 1'000'000'000;
  world.network().block(0, 1);
  world.run_until(end_ns);
  world.network().unblock(0, 1);
  world.run_until_done(8);
  for (std::size_t i = 4; i < 8; ++i) {
    EXPECT_TRUE(world.done[i].result.status.ok());
    EXPECT_GT(world.done[i].result.done_ns, end_ns);
  }
}

TEST(TcpRing, SameSeedSameTraceAndAnotherSeedAnother) {
  const auto hash = [](std::uint64_t seed) {
    RingWorld world(star(0.02), seed);
    (void)world.call(CallKind::all_reduce, 100'000);
    return world.network().trace().value();
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

}  // namespace
}  // namespace leeway::sim
