// The same small cases through the shipping core and through its arithmetic, over the same network:
// counts must be equal, loss ratios and times near.
#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "abstract_group.h"
#include "endpoint/abstract_endpoints.h"
#include "endpoint/core_endpoints.h"

namespace leeway::sim::testing {
namespace {

struct Case {
  std::uint32_t ranks = 4;
  std::uint64_t bytes = 262'144;
  std::string delivery = "best_effort";
  std::string codec = "fp32";
  double loss = 0;
  CallKind kind = CallKind::all_reduce;
};

scenario::Scenario star(const Case& wanted) {
  const std::string operation =
      wanted.kind == CallKind::replica_reduce ? "replica_step" : to_string(wanted.kind);
  return scenario_of("ranks: " + std::to_string(wanted.ranks) +
                     " topology { star {} }"
                     " operation { kind: " +
                     operation + " bytes: " + std::to_string(wanted.bytes) + " codec: \"" +
                     wanted.codec + "\" delivery { kind: " + wanted.delivery +
                     " deadline_ms: 1000 } }"
                     " link { tier: uplink rate_mbps: 10000 delay_ms { fixed: 0.005 } }"
                     " link { tier: downlink rate_mbps: 10000 delay_ms { fixed: 0.005 }"
                     "   queue { bytes: 4000000 } loss { random { p: " +
                     std::to_string(wanted.loss) + " } } }");
}

struct Both {
  Tally core;
  Tally abstract;
};

Both run_both(const Case& wanted, std::uint32_t rounds) {
  const scenario::Scenario scenario = star(wanted);
  Group<CoreEndpoints> core(scenario);
  Group<AbstractEndpoints> abstract(scenario);
  return {core.run_rounds(wanted.kind, rounds), abstract.run_rounds(wanted.kind, rounds)};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void expect_equal_counts(const Case& wanted) {
  const Both both = run_both(wanted, 3);
  SCOPED_TRACE(std::string(to_string(wanted.kind)) + " of " + std::to_string(wanted.ranks) + ", " +
               std::to_string(wanted.bytes) + " bytes, " + wanted.codec);
  EXPECT_EQ(both.abstract.expected, both.core.expected);
  EXPECT_EQ(both.abstract.arrived, both.abstract.expected);
  EXPECT_EQ(both.abstract.arrived_first, both.abstract.expected);
  EXPECT_EQ(both.abstract.data_packets, both.core.data_packets);
  EXPECT_EQ(both.abstract.bytes_sent, both.core.bytes_sent);
  EXPECT_EQ(both.abstract.failed, 0u);
  EXPECT_EQ(both.abstract.cut, 0u);
}

TEST(AbstractAgainstCore, CountsOfLosslessCallsAreEqual) {
  for (const CallKind kind :
       {CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather, CallKind::broadcast,
        CallKind::all_to_all, CallKind::replica_reduce}) {
    for (const std::uint32_t ranks : {2u, 5u, 8u}) {
      expect_equal_counts({.ranks = ranks, .bytes = 200'000, .delivery = "exact", .kind = kind});
    }
  }
}

TEST(AbstractAgainstCore, CountsOfCodecsAndSizesAreEqual) {
  for (const char* codec : {"fp32", "bf16", "nvfp4", "int8", "sparse:1/2"}) {
    for (const std::uint64_t bytes : {256ull, 70'000ull, 1'500'000ull})
      expect_equal_counts({.ranks = 3, .bytes = bytes, .codec = codec});
  }
}

// Measured: within 5 %.
TEST(AbstractAgainstCore, LosslessRoundsTakeTheSameTime) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    for (const std::uint64_t bytes : {16'384ull, 262'144ull, 2'097'152ull}) {
      const Both both = run_both({.ranks = ranks, .bytes = bytes}, 10);
      EXPECT_NEAR(both.abstract.mean_ms() / both.core.mean_ms(), 1.0, 0.07)
          << ranks << " ranks, " << bytes << " bytes";
    }
  }
}

// Loss of each packet on its own, so that the share is binomial: 5 sigmas, and 7 between the two.
void expect_equal_losses(const Case& wanted) {
  const Both both = run_both(wanted, 20);
  const auto expected = static_cast<double>(both.core.expected);
  const double sigma = std::sqrt(wanted.loss * (1 - wanted.loss) / expected);
  const auto share = [&](std::uint64_t packets) { return static_cast<double>(packets) / expected; };
  SCOPED_TRACE(wanted.delivery + ", loss " + std::to_string(wanted.loss));
  EXPECT_EQ(both.abstract.expected, both.core.expected);
  EXPECT_EQ(both.abstract.failed, 0u);
  EXPECT_NEAR(share(both.abstract.arrived_first), 1 - wanted.loss, 5 * sigma);
  EXPECT_NEAR(share(both.abstract.arrived), share(both.core.arrived), 7 * sigma);
  EXPECT_NEAR(both.abstract.contributors_mean, both.core.contributors_mean,
              7 * sigma * wanted.ranks * std::sqrt(2.0));
  EXPECT_NEAR(
      static_cast<double>(both.abstract.data_packets) / static_cast<double>(both.core.data_packets),
      1.0, 0.02);
  if (wanted.delivery != "exact") return;
  EXPECT_EQ(both.abstract.arrived, both.abstract.expected);
  EXPECT_EQ(both.abstract.contributors_min, wanted.ranks);
}

TEST(AbstractAgainstCore, LossesAreThoseOfTheNetwork) {
  for (const char* delivery : {"best_effort", "exact"}) {
    for (const double loss : {0.05, 0.2})
      expect_equal_losses({.ranks = 6, .delivery = delivery, .loss = loss});
  }
}

TEST(AbstractAgainstCore, BoundedDeliveryStopsAtItsBound) {
  const Case wanted{
      .ranks = 4, .bytes = 1'000'000, .delivery = "bounded loss_max: 0.05", .loss = 0.2};
  const Both both = run_both(wanted, 10);
  const auto share = [](const Tally& tally) {
    return static_cast<double>(tally.arrived) / static_cast<double>(tally.expected);
  };
  // The reduce half may lack 5 %, the spread nothing.
  EXPECT_GE(share(both.abstract), 0.975);
  EXPECT_LT(share(both.abstract), 1.0);
  EXPECT_NEAR(share(both.abstract), share(both.core), 0.005);
}

// Where a time-out decides, single rounds differ by milliseconds; medians do not.
TEST(AbstractAgainstCore, LossyRoundsTakeSimilarTimes) {
  for (const char* delivery : {"best_effort", "exact"}) {
    const Both both =
        run_both({.ranks = 4, .bytes = 1'000'000, .delivery = delivery, .loss = 0.05}, 60);
    EXPECT_NEAR(median(both.abstract.round_ms) / median(both.core.round_ms), 1.0, 0.15) << delivery;
  }
}

}  // namespace
}  // namespace leeway::sim::testing
