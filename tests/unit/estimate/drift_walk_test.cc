// Compares predictions with measurements: a simulated parameter walks and is broadcast with loss,
// and DriftMeter measures.
//
// Every comparison is within 3 standard errors. Broadcasts that follow each other are correlated
// over a few ages, so standard errors come from the spread of 100 batch means, each far longer than
// any age. Seeds are fixed.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/philox.h"
#include "estimate/drift.h"
#include "estimate/drift_meter.h"
#include "support/drift_forms.h"

namespace leeway::estimate {
namespace {

constexpr std::size_t kReceivers = 3;
constexpr int kBatches = 100;
constexpr int kBatchSteps = 3000;
constexpr std::uint32_t kWindow = 16;

class BatchMeans {
 public:
  void add(double batch_mean) { means_.push_back(batch_mean); }
  double mean() const {
    double sum = 0.0;
    for (const double value : means_) sum += value;
    return sum / static_cast<double>(means_.size());
  }
  double standard_error() const {
    double squares = 0.0;
    for (const double value : means_) squares += (value - mean()) * (value - mean());
    const auto n = static_cast<double>(means_.size());
    return std::sqrt(squares / (n - 1) / n);
  }
  void expect(double wanted, const std::string& what) const {
    EXPECT_NEAR(mean(), wanted, 3 * standard_error())
        << what << ", standard error " << standard_error();
    EXPECT_GT(standard_error(), 0.0) << what;
    EXPECT_LT(standard_error(), 0.05 * wanted) << what << ": too few steps to tell anything";
  }

 private:
  std::vector<double> means_;
};

// Returns a uniform number that depends only on its arguments.
double draw(std::uint64_t seed, std::uint32_t step, std::uint32_t receiver, std::uint32_t purpose) {
  return to_unit(keyed_hash(seed, step, receiver, purpose, 0));
}

// A link with Gilbert losses. A burst of 1/(1-p) makes losses independent.
class LossyLink {
 public:
  LossyLink(double p, double burst) : fail_(p / (1.0 - p) / burst), recover_(1.0 / burst) {}
  bool loses(double uniform) {
    bad_ = bad_ ? uniform >= recover_ : uniform < fail_;
    return bad_;
  }

 private:
  double fail_;
  double recover_;
  bool bad_ = false;
};

struct Walk {
  double p = 0.1;
  double burst = 1.0 / (1.0 - 0.1);
  double step_mean = 0.0;  // steps are step_mean + 1 or step_mean - 1: variance 1
  std::uint64_t seed = 1;
};

struct MeasuredDrift {
  BatchMeans pair, owner, differ, gap, step_variance, step_mean_square, age;
};

// One element with one owner (rank 0) and kReceivers copies. In every batch the walk and its copies
// are moved back near 0, so that floats keep their precision.
class Simulation {
 public:
  explicit Simulation(const Walk& walk)
      : walk_(walk), links_(kReceivers, LossyLink(walk.p, walk.burst)) {}

  MeasuredDrift run() {
    run_batch(nullptr);  // reaches the stationary state
    MeasuredDrift measured;
    for (int batch = 0; batch < kBatches; ++batch) run_batch(&measured);
    return measured;
  }

 private:
  void run_batch(MeasuredDrift* measured) {
    const float origin = values_[0];
    for (float& value : values_) value -= origin;
    DriftMeter meter(1, kWindow);
    double differing = 0.0;
    double ages = 0.0;
    for (int i = 0; i < kBatchSteps; ++i) {
      broadcast(meter);
      meter.add_sample(values_, 0);
      differing += (ages_[0] != ages_[1]) + (ages_[0] != ages_[2]) + (ages_[1] != ages_[2]);
      for (const int age : ages_) ages += age;
    }
    if (measured == nullptr) return;
    const DriftMeasurement result = meter.result();
    measured->pair.add(result.pair);
    measured->owner.add(result.owner);
    measured->gap.add(result.gap);
    measured->step_variance.add(result.step_variance);
    measured->step_mean_square.add(result.step_mean_square);
    measured->differ.add(differing / 3 / kBatchSteps);
    measured->age.add(ages / kReceivers / kBatchSteps);
  }

  void broadcast(DriftMeter& meter) {
    ++step_;
    const auto delta =
        static_cast<float>(walk_.step_mean + (draw(walk_.seed, step_, 0, 1) < 0.5 ? -1.0 : 1.0));
    meter.add_step({&delta, 1});
    values_[0] += delta;
    for (std::size_t r = 0; r < kReceivers; ++r) {
      if (links_[r].loses(draw(walk_.seed, step_, static_cast<std::uint32_t>(r), 2))) {
        ++ages_[r];
        continue;
      }
      const double gap = static_cast<double>(values_[0]) - values_[1 + r];
      meter.add_gap(gap * gap);
      values_[1 + r] = values_[0];
      ages_[r] = 0;
    }
  }

  Walk walk_;
  std::vector<LossyLink> links_;
  std::uint32_t step_ = 0;
  std::array<float, 1 + kReceivers> values_{};
  std::array<int, kReceivers> ages_{};
};

class DriftWalk : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Loss, DriftWalk, ::testing::Values(0.05, 0.1, 0.2, 0.4),
                         [](const auto& p) {
                           return std::to_string(static_cast<int>(std::lround(100 * p.param))) +
                                  "Percent";
                         });

TEST_P(DriftWalk, WithoutMeanStepFollowsTheVarianceTerms) {
  const double p = GetParam();
  const MeasuredDrift measured = Simulation({.p = p, .burst = 1 / (1 - p), .seed = 101}).run();
  const DriftModel model = independent_drift(p);
  measured.pair.expect(model.pair.of(1.0, 0.0), "pair");
  measured.owner.expect(model.owner.of(1.0, 0.0), "owner");
  measured.differ.expect(model.differ, "different versions");
  measured.age.expect(model.age_mean, "age");
}

TEST_P(DriftWalk, TheGapFormNeedsNoModelOfTheSteps) {
  const double p = GetParam();
  for (const double step_mean : {0.0, 0.5}) {
    const MeasuredDrift measured =
        Simulation({.p = p, .burst = 1 / (1 - p), .step_mean = step_mean, .seed = 202}).run();
    measured.pair.expect(pair_drift_from_gap(p, measured.gap.mean()), "pair from measured gap");
    if (step_mean == 0.0) measured.gap.expect(1.0 / (1.0 - p), "gap of a random walk");
  }
}

TEST_P(DriftWalk, AMeanStepAddsItsOwnTerms) {
  const double p = GetParam();
  const MeasuredDrift measured =
      Simulation({.p = p, .burst = 1 / (1 - p), .step_mean = 0.5, .seed = 303}).run();
  const DriftModel model = independent_drift(p);
  measured.pair.expect(model.pair.of(1.0, 0.25), "pair");
  measured.owner.expect(model.owner.of(1.0, 0.25), "owner");
  measured.step_variance.expect(1.0, "step variance");
}

TEST(DriftWalkBurst, FollowsTheGilbertForms) {
  constexpr std::array<std::array<double, 2>, 3> kCases = {{{.1, 4}, {.1, 10}, {.4, 5}}};
  for (const auto& [p, burst] : kCases) {
    const MeasuredDrift measured =
        Simulation({.p = p, .burst = burst, .step_mean = 0.3, .seed = 404}).run();
    const DriftModel model = testing::burst_drift(p, burst);
    const std::string at = " at p " + std::to_string(p) + ", burst " + std::to_string(burst);
    measured.pair.expect(model.pair.of(1.0, 0.09), "pair" + at);
    measured.owner.expect(model.owner.of(1.0, 0.09), "owner" + at);
    measured.differ.expect(model.differ, "different versions" + at);
    measured.age.expect(model.age_mean, "age" + at);
  }
}

// The published one-step model: the gap is drawn anew whenever exactly one of the two ranks
// receives, and stays when neither does.
TEST(DriftWalkOneStep, FollowsTheGapForm) {
  for (const double p : {0.1, 0.2, 0.4}) {
    BatchMeans squares;
    double distance = 0.0;
    std::uint32_t step = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      double sum = 0.0;
      for (int i = 0; i < kBatchSteps; ++i, ++step) {
        const bool first = draw(7, step, 0, 3) >= p;
        const bool second = draw(7, step, 1, 3) >= p;
        if (first && second) distance = 0.0;
        if (first != second)
          distance = std::sqrt(12.0) * (draw(7, step, 2, 3) - 0.5);  // variance 1
        sum += distance * distance;
      }
      squares.add(sum / kBatchSteps);
    }
    squares.expect(pair_drift_from_gap(p, 1.0), "one-step model at p " + std::to_string(p));
  }
}

TEST(DriftWalkAgeCap, IsRefreshedAtThePredictedRate) {
  constexpr double kP = 0.4;
  constexpr std::uint32_t kCap = 4;
  BatchMeans refreshes;
  std::uint32_t age = 0;
  std::uint32_t step = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    int refreshed = 0;
    for (int i = 0; i < kBatchSteps; ++i, ++step) {
      age = draw(8, step, 0, 4) < kP ? age + 1 : 0;
      if (age < kCap) continue;
      age = 0;
      ++refreshed;
    }
    refreshes.add(static_cast<double>(refreshed) / kBatchSteps);
  }
  refreshes.expect(testing::refresh_rate(kP, kCap), "refreshes a broadcast");
}

}  // namespace
}  // namespace leeway::estimate
