// The point where training ends: SGD on quadratics that differ between ranks, over links that lose
// unequally, by the library's protocol in the simulator. Unbiased estimators settle around the true
// optimum. The ratio rule settles where its expected weights predict. With N equal links that lose
// p, and q = 1-p, an owner has the weight (1-p^N)/(N q); simulator/workload/README.md has unequal
// links.
//
// Iterates are averaged after a burn-in. The test measures how far their mean lies on the way from
// the optimum to the ratio rule's fixed point: 1 for ratio, 0 for an unbiased estimator. The
// scatter over some thousand elements gives the standard error.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "run/run.h"
#include "scenario/parse.h"
#include "schedule/shard_map.h"
#include "workload/quadratic.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kBurnIn = 500;

// Relative error of the ratio rule's fixed point that all elements share. It comes from the random
// number of rank 3's packets that arrive. Rank 3 sends 36 packets to each of 3 owners in 1,500
// rounds. Half of these 162,000 packets arrive, with a standard error of 0.00124. So rank 3's
// weight of 0.134 is off by 0.25 %. This weight differs from a quarter, the fair one, by 0.116, and
// the fixed point differs from the optimum in proportion to that.
constexpr double kArrivalError = 0.0025 * 0.134 / 0.116;

scenario::Scenario scenario_of(const std::string& estimator) {
  return scenario::parse_text(
             "ranks: 4 rounds: 2000 "
             "workload { quadratic { condition: 1 noise: 0.05 center_deviation: 1 learning_rate: "
             "0.02 } } "
             "operation { bytes: 65536 datagram_bytes: 512 delivery { deadline_ms: 500 } "
             "estimator: " +
                 estimator +
                 " } "
                 "link { delay_ms { fixed: 0.05 } loss { random { p: 0.1 } } } "
                 "link { from: \"3\" loss { random { p: 0.5 } } }",
             "fixed_point")
      .value();
}

// The quadratic workload, which also sums up rank 0's positions.
class Remembering final : public Workload {
 public:
  Remembering(std::unique_ptr<QuadraticWorkload> inner, std::vector<double>& sums)
      : inner_(std::move(inner)), sums_(sums) {}

  std::size_t elements() const override { return inner_->elements(); }
  std::span<float> parameters(std::uint32_t rank) override { return inner_->parameters(rank); }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override {
    inner_->gradient(rank, round, out);
  }
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override {
    inner_->update(rank, round, offset, mean, parameters);
    if (rank != 0 || round < kBurnIn) return;
    for (std::size_t i = 0; i < parameters.size(); ++i) sums_[i] += parameters[i];
  }
  double loss(std::uint32_t rank) override { return inner_->loss(rank); }
  std::vector<Measure> measures() override { return inner_->measures(); }

 private:
  std::unique_ptr<QuadraticWorkload> inner_;
  std::vector<double>& sums_;
};

QuadraticWorkload::Options options_of(const scenario::Scenario& scenario) {
  const auto& quadratic = scenario.workload().quadratic();
  return {.ranks = kRanks,
          .elements = scenario.operation().bytes() / 4,
          .condition = quadratic.condition(),
          .noise = static_cast<float>(quadratic.noise()),
          .center_deviation = static_cast<float>(quadratic.center_deviation()),
          .learning_rate = static_cast<float>(quadratic.learning_rate())};
}

// Returns the ratio rule's expected weights in the shard of `owner`. The owner's own contribution
// is certain, ranks 0 to 2 arrive with probability 0.9, rank 3 with 0.5.
std::array<double, kRanks> ratio_weights(std::uint32_t owner) {
  std::array<double, kRanks> arrives = {0.9, 0.9, 0.9, 0.5};
  arrives[owner] = 1;
  std::array<double, kRanks> weights{};
  for (unsigned mask = 0; mask < 1u << kRanks; ++mask) {
    double probability = 1;
    for (std::uint32_t i = 0; i < kRanks; ++i)
      probability *= (mask >> i & 1) != 0 ? arrives[i] : 1 - arrives[i];
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      if ((mask >> i & 1) != 0) weights[i] += probability / std::popcount(mask);
    }
  }
  return weights;
}

struct Tilt {
  double part = 0;  // how far along the way from the optimum to the ratio rule's fixed point
  double error = 0;
};

Tilt tilt_of(const std::string& estimator) {
  const scenario::Scenario scenario = scenario_of(estimator);
  std::vector<double> where(scenario.operation().bytes() / 4, 0.0);
  RunOptions options;
  options.workload = [&](const scenario::Scenario& text,
                         std::uint64_t seed) -> Result<std::unique_ptr<Workload>> {
    return std::unique_ptr<Workload>(
        new Remembering(std::make_unique<QuadraticWorkload>(options_of(text), seed), where));
  };
  const auto record = run(scenario, 1, options);
  EXPECT_TRUE(record.ok()) << record.status().text();
  EXPECT_TRUE(record->passed());
  for (double& value : where) value /= scenario.rounds() - kBurnIn;

  const QuadraticWorkload same(options_of(scenario), 1);
  const auto optimum = same.fixed_point(std::array{0.25, 0.25, 0.25, 0.25});
  const auto shards = schedule::ShardMap::even(where.size(), kRanks);
  double product = 0;
  double square = 0;
  std::vector<double> tilts(where.size());
  for (std::uint32_t owner = 0; owner < kRanks; ++owner) {
    const auto predicted = same.fixed_point(ratio_weights(owner));
    const schedule::Shard shard = shards[static_cast<Rank>(owner)];
    for (std::size_t i = shard.offset; i < shard.offset + shard.count; ++i) {
      tilts[i] = static_cast<double>(predicted[i]) - optimum[i];
      product += tilts[i] * (where[i] - optimum[i]);
      square += tilts[i] * tilts[i];
    }
  }
  const double part = product / square;
  double scatter = 0;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const double rest = where[i] - optimum[i] - part * tilts[i];
    scatter += rest * rest * tilts[i] * tilts[i];
  }
  const Tilt tilt{part, std::sqrt(scatter) / square};
  std::printf("%-18s ends at %.4f +- %.4f of the way to the ratio rule's fixed point\n",
              estimator.c_str(), tilt.part, tilt.error);
  return tilt;
}

TEST(EstimatorFixedPoint, WeightsAreThoseOfTheClosedForm) {
  const auto weights = ratio_weights(0);
  EXPECT_NEAR(weights[0], 0.318750, 1e-9);
  EXPECT_NEAR(weights[1], 0.273750, 1e-9);
  EXPECT_NEAR(weights[3], 0.133750, 1e-9);
  EXPECT_NEAR(ratio_weights(3)[3], (1 - 1e-4 / 1) / 3.6, 1e-9);
}

TEST(EstimatorFixedPoint, RatioMissesTheOptimumByWhatItsWeightsSay) {
  const Tilt tilt = tilt_of("ratio");
  EXPECT_LT(tilt.error, 0.05) << "the comparison says nothing";
  EXPECT_NEAR(tilt.part, 1, 3 * std::hypot(tilt.error, kArrivalError));
}

TEST(EstimatorFixedPoint, HorvitzThompsonReachesTheOptimum) {
  const Tilt tilt = tilt_of("horvitz_thompson");
  EXPECT_LT(tilt.error, 0.05);
  EXPECT_NEAR(tilt.part, 0, 3 * tilt.error);
}

TEST(EstimatorFixedPoint, AugmentedReachesTheOptimum) {
  const Tilt tilt = tilt_of("augmented");
  EXPECT_LT(tilt.error, 0.05);
  EXPECT_NEAR(tilt.part, 0, 3 * tilt.error);
}

}  // namespace
}  // namespace leeway::sim
