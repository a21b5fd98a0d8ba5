// Runs without contents must equal runs with them: in datagrams, lengths, times and callers'
// counts. A trace hash covers every step of every packet.
#include <string>

#include <gtest/gtest.h>

#include "group.h"

namespace leeway::sim::testing {
namespace {

struct Case {
  std::uint32_t ranks = 4;
  std::uint64_t bytes = 262'144;
  std::string delivery = "best_effort";
  std::string operation;
  std::string downlink;
  std::string queue = "bytes: 4000000";
  CallKind kind = CallKind::all_reduce;
};

scenario::Scenario star(const Case& wanted, bool contents) {
  const std::string delivery =
      " delivery { kind: " + wanted.delivery + " deadline_ms: 1000 } " + wanted.operation;
  return scenario_of("ranks: " + std::to_string(wanted.ranks) +
                     " contents: " + (contents ? "true" : "false") +
                     " topology { star {} } operation { kind: " + to_string(wanted.kind) +
                     " bytes: " + std::to_string(wanted.bytes) + delivery +
                     " } link { tier: uplink rate_mbps: 10000 delay_ms { fixed: 0.005 } }"
                     " link { tier: downlink rate_mbps: 10000 delay_ms { fixed: 0.005 }"
                     "   queue { " +
                     wanted.queue + " } " + wanted.downlink + " }");
}

void expect_the_same(const Case& wanted) {
  constexpr std::uint32_t kRounds = 3;
  SCOPED_TRACE(std::string(to_string(wanted.kind)) + " of " + std::to_string(wanted.ranks) + ", " +
               std::to_string(wanted.bytes) + " bytes, " + wanted.delivery + wanted.operation +
               wanted.downlink + wanted.queue);
  Group with(star(wanted, true));
  Group without(star(wanted, false));
  const Tally a = with.run_rounds(wanted.kind, kRounds);
  const Tally b = without.run_rounds(wanted.kind, kRounds);
  EXPECT_EQ(with.network().trace().value(), without.network().trace().value());
  EXPECT_GT(a.expected, 0u);
  EXPECT_EQ(a.expected, b.expected);
  EXPECT_EQ(a.arrived, b.arrived);
  EXPECT_EQ(a.arrived_first, b.arrived_first);
  EXPECT_EQ(a.bytes_sent, b.bytes_sent);
  EXPECT_EQ(a.failed, b.failed);
  EXPECT_EQ(a.cut, b.cut);
  EXPECT_EQ(a.contributors_mean, b.contributors_mean);
  EXPECT_EQ(a.contributors_min, b.contributors_min);
  EXPECT_EQ(a.round_ms, b.round_ms);
}

TEST(WithoutContents, EveryKindOfCallLeavesTheSameTrace) {
  for (const CallKind kind : {CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather,
                              CallKind::broadcast, CallKind::all_to_all}) {
    for (const std::uint32_t ranks : {2u, 5u, 8u})
      expect_the_same({.ranks = ranks, .bytes = 200'000, .delivery = "exact", .kind = kind});
  }
}

TEST(WithoutContents, EveryCodecAndSizeLeavesTheSameTrace) {
  for (const char* codec : {"fp32", "bf16", "nvfp4", "int8", "sparse:1/2"}) {
    for (const std::uint64_t bytes : {256ull, 16'384ull, 70'000ull, 1'500'000ull}) {
      expect_the_same(
          {.ranks = 3, .bytes = bytes, .operation = "codec: \"" + std::string(codec) + "\""});
    }
  }
}

TEST(WithoutContents, LossesLeaveTheSameTrace) {
  for (const char* delivery : {"best_effort", "bounded loss_max: 0.05", "exact"}) {
    for (const char* loss : {"0.01", "0.2"}) {
      const std::string downlink = "loss { random { p: " + std::string(loss) + " } }";
      expect_the_same({.ranks = 6, .delivery = delivery, .downlink = downlink});
      expect_the_same({.ranks = 4,
                       .delivery = delivery,
                       .operation = "codec: \"nvfp4\"",
                       .downlink = downlink});
    }
  }
}

TEST(WithoutContents, EveryEstimatorLeavesTheSameTrace) {
  for (const char* estimator :
       {"zero_fill", "ratio", "symmetric_ratio", "stratified", "horvitz_thompson", "augmented"}) {
    expect_the_same({.operation = "estimator: " + std::string(estimator),
                     .downlink = "loss { random { p: 0.1 } }"});
  }
}

TEST(WithoutContents, DamageCopiesAndTrimmingLeaveTheSameTrace) {
  expect_the_same({.delivery = "exact", .downlink = "corrupt { p: 0.02 } duplicate { p: 0.02 }"});
  expect_the_same({.delivery = "exact", .queue = "bytes: 60000 trim {}"});
  expect_the_same({.delivery = "exact",
                   .operation = "inject: \"loss=0.1,dup=0.02,corrupt=0.02,reorder=0.02\""});
}

TEST(WithoutContents, SmallWindowsLeaveTheSameTrace) {
  expect_the_same({.delivery = "exact", .operation = "window_bytes: 4500"});
}

TEST(WithoutContents, OnlyHeadersTakeMemory) {
  Group group(star({.delivery = "exact"}, false));
  for (std::uint32_t rank = 0; rank < 4; ++rank) group.submit(rank, CallKind::all_reduce);
  for (int i = 0; i < 2000 && group.network().payloads().held() == 0; ++i) group.step();
  ASSERT_GT(group.network().payloads().held(), 0u);
  EXPECT_EQ(group.network().payloads().get(0).size(), wire::kDataHeaderBytes);
}

}  // namespace
}  // namespace leeway::sim::testing
