// The recursions against the sums they stand for, against a table of known values, and where they
// must not break.
#include "estimate/binomial_moments.h"

#include <gtest/gtest.h>

#include <array>

#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::binomial;

TEST(MeanOwnerShare, IsTheClosedFormOfTheRatioRule) {
  EXPECT_NEAR(mean_owner_share(4, 0.1), 0.277750, 5e-7);
  EXPECT_NEAR(mean_owner_share(4, 0.4), 0.406000, 5e-7);
  EXPECT_NEAR(mean_owner_share(8, 0.4), 0.208197, 5e-7);
  EXPECT_NEAR(mean_owner_share(64, 0.1), 0.017361, 5e-7);
  EXPECT_NEAR(mean_owner_share(64, 0.4), 0.026042, 5e-7);
}

TEST(MeanOwnerShare, IsTheExpectationOfOneOverTheContributors) {
  for (const std::uint32_t n : {2u, 5u, 33u}) {
    double sum = 0.0;
    for (std::uint32_t k = 0; k < n; ++k) sum += binomial(n - 1, k, 0.7) / (1 + k);
    EXPECT_NEAR(mean_owner_share(n, 0.3), sum, 1e-12) << n;
  }
}

TEST(MeanOwnerShare, HoldsAtTheEndsOfTheRange) {
  EXPECT_DOUBLE_EQ(mean_owner_share(1024, 0.0), 1.0 / 1024);
  EXPECT_DOUBLE_EQ(mean_owner_share(1024, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(mean_owner_share(1, 0.5), 1.0);
}

TEST(MeanInverseCount, IsTheSumOverTheBinomial) {
  for (const std::uint32_t n : {1u, 2u, 7u, 64u}) {
    double sum = 0.0;
    for (std::uint32_t k = 1; k <= n; ++k) sum += binomial(n, k, 0.6) / k;
    EXPECT_NEAR(mean_inverse_count(n, 0.4), sum, 1e-12) << n;
  }
}

TEST(MeanInverseCount, HoldsAtTheEndsOfTheRange) {
  EXPECT_DOUBLE_EQ(mean_inverse_count(1024, 0.0), 1.0 / 1024);
  EXPECT_DOUBLE_EQ(mean_inverse_count(1024, 1.0), 0.0);
  EXPECT_DOUBLE_EQ(mean_inverse_count(0, 0.5), 0.0);
}

TEST(MeanRealisedWeight, GivesThePublishedTable) {
  struct Row {
    double p;
    std::array<double, 6> weights;  // n = 1, 2, 4, 16, 64, 256
  };
  constexpr std::array<std::uint32_t, 6> kPackets = {1, 2, 4, 16, 64, 256};
  constexpr std::array<Row, 4> kTable = {{
      {.01, {1, 1.019802, 1.013537, 1.010782, 1.010263, 1.010141}},
      {.1, {1, 1.181818, 1.156616, 1.119476, 1.113078, 1.111596}},
      {.2, {1, 1.333333, 1.367521, 1.271624, 1.255001, 1.251228}},
      {.4, {1, 1.571429, 1.945813, 1.749230, 1.684696, 1.671047}},
  }};
  for (const Row& row : kTable) {
    for (std::size_t i = 0; i < kPackets.size(); ++i) {
      EXPECT_NEAR(mean_realised_weight(kPackets[i], row.p), row.weights[i], 6e-7)
          << row.p << " " << kPackets[i];
    }
    EXPECT_NEAR(mean_realised_weight(1u << 20, row.p), 1.0 / (1.0 - row.p), 1e-5)
        << "the limit of many packets";
  }
}

}  // namespace
}  // namespace leeway::estimate
