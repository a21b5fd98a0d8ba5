// Estimators on tensors so short that they have only one or two owners, which change from call to
// call. Five ranks average in thousands of all_reduces over the library's protocol, in virtual time
// with fixed seeds. Standard errors come from batches, because bursts outlast a call.
//
// Statements, all within 3 standard errors:
//   * horvitz_thompson and augmented have no bias on unequal and bursty links;
//   * ratio, symmetric_ratio and stratified have no bias on equal links, because every rank is the
//     owner in turn;
//   * with ratio, the owner of a call has the weight (1 - p^N) / (N q), see OfOneOwnerTilt;
//   * zero_fill loses the share that its formula says.
// All ranks hold the same bits after every call.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/group_round.h"
#include "sim/measurement.h"
#include "support/seeds.h"

namespace leeway::few_owners {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 5;
constexpr int kRounds = testing::seeds(3'000, 10'000);
constexpr int kBatch = 50;  // calls: ten turns of every owner
constexpr std::size_t kDatagramBytes = 512;
constexpr std::size_t kPacketElements = 96;  // elements in such a datagram, in whole codec blocks
constexpr double kEqualLoss = 0.2;
using PerRank = std::array<double, kRanks>;
constexpr PerRank kUnequal = {0, .05, .15, .30, .45};
constexpr PerRank kEqual = {kEqualLoss, kEqualLoss, kEqualLoss, kEqualLoss, kEqualLoss};

struct Setting {
  const char* name;
  Estimator estimator = Estimator::ratio;
  PerRank loss = kEqual;
  double burst = 1;
  std::size_t owners = 1;  // owners of the tensor, a packet each
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

double gradient(int rank, std::size_t packet) {
  return (rank + 1) * (1.0 + 0.5 * std::sin(static_cast<double>(packet) + rank));
}

class Experiment {
 public:
  explicit Experiment(const Setting& setting) : setting_(setting), group_(options_for(setting)) {
    for (std::size_t packet = 0; packet < setting.owners; ++packet) {
      for (int rank = 0; rank < kRanks; ++rank) mean_ += gradient(rank, packet) / kRanks;
    }
  }

  Sample error;       // error of the sum over packets, relative to its mean
  Sample own_weight;  // the owner's weight, in calls that it owns

  void run() {
    double error_sum = 0.0;
    double weight_sum = 0.0;
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
      run_once();
      error_sum += result_error();
      weight_sum += tensors_[0][1 + static_cast<std::size_t>(round % kRanks)];
      if ((round + 1) % kBatch != 0) continue;
      error.add(error_sum / kBatch);
      own_weight.add(weight_sum / kBatch);
      error_sum = weight_sum = 0.0;
    }
  }

 private:
  static testing::GroupOptions options_for(const Setting& setting) {
    testing::GroupOptions options{.size = kRanks, .datagram_bytes = kDatagramBytes, .seed = 411};
    options.faults.link_loss.assign(setting.loss.begin(), setting.loss.end());
    options.faults.burst = setting.burst;
    options.faults.seed = 23;
    return options;
  }

  // The first element of a packet is the gradient. In the first packet, an element for each rank
  // follows, to which only that rank contributes 1, so its result is that rank's weight.
  void fill(Rank rank) {
    tensors_[rank].assign((setting_.owners - 1) * kPacketElements + kRanks + 1, 0.0f);
    for (std::size_t packet = 0; packet < setting_.owners; ++packet)
      tensors_[rank][packet * kPacketElements] = static_cast<float>(gradient(rank, packet));
    tensors_[rank][1 + rank] = 1.0f;
  }

  void run_once() {
    const auto requests = testing::run_round(group_, [&](Rank rank) {
      fill(rank);
      OperationSpec spec{.kind = OperationKind::all_reduce,
                         .input = std::span(tensors_[rank]),
                         .output = std::span(tensors_[rank])};
      spec.options.op = ReduceOp::avg;
      spec.options.delivery = best_effort(60s);
      spec.options.estimator = setting_.estimator;
      return spec;
    });
    for (Rank rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(requests[rank]->report.owners, setting_.owners);
      ASSERT_EQ(tensors_[rank], tensors_[0]);
    }
  }

  double result_error() const {
    double sum = 0.0;
    for (std::size_t packet = 0; packet < setting_.owners; ++packet)
      sum += tensors_[0][packet * kPacketElements];
    return sum / mean_ - 1.0;
  }

  Setting setting_;
  testing::EngineGroup group_;
  std::array<std::vector<float>, kRanks> tensors_;
  double mean_ = 0.0;
};

constexpr double kResolution = 0.004;
constexpr double kExact = 1e-6;  // rounding of float32 results

class OfOneOwner : public ::testing::TestWithParam<Setting> {};

TEST_P(OfOneOwner, IsUnbiased) {
  Experiment experiment(GetParam());
  experiment.run();
  testing::print_header("mean error, relative");
  // A flow of one packet is never lost, because it is requested again, so errors are only rounding.
  if (experiment.error.standard_error() < kExact) {
    EXPECT_NEAR(experiment.error.mean(), 0.0, kExact);
    return;
  }
  expect_matches(GetParam().name, experiment.error, 0.0, kResolution);
}

constexpr auto kHorvitzThompson = Estimator::horvitz_thompson;
constexpr auto kAugmented = Estimator::augmented;
INSTANTIATE_TEST_SUITE_P(
    Estimators, OfOneOwner,
    ::testing::Values(Setting{"horvitz_thompson", kHorvitzThompson, kUnequal},
                      Setting{"horvitz_thompson_2_owners", kHorvitzThompson, kUnequal, 1, 2},
                      Setting{"horvitz_thompson_bursts", kHorvitzThompson, kUnequal, 4},
                      Setting{"augmented", kAugmented, kUnequal},
                      Setting{"augmented_2_owners", kAugmented, kUnequal, 1, 2},
                      Setting{"ratio", Estimator::ratio},
                      Setting{"ratio_2_owners", Estimator::ratio, kEqual, 1, 2},
                      Setting{"symmetric_ratio", Estimator::symmetric_ratio},
                      Setting{"stratified", Estimator::stratified}),
    [](const auto& row) { return std::string(row.param.name); });

// In a call whose only shard it owns, a rank has the weight (1 - p^N) / (N q), for N ranks and
// links that lose the share p = 1 - q (src/math/estimate/README.md).
TEST(OfOneOwnerTilt, IsThatOfTheRatioRule) {
  Experiment experiment({"ratio", Estimator::ratio});
  experiment.run();
  testing::print_header("weight of the owner");
  const double q = 1.0 - kEqualLoss;
  expect_matches("ratio", experiment.own_weight,
                 (1.0 - std::pow(kEqualLoss, kRanks)) / (kRanks * q), kResolution);
}

TEST(OfOneOwnerZeroFill, LosesWhatItsFormulaSays) {
  Experiment experiment({"zero_fill", Estimator::zero_fill});
  experiment.run();
  testing::print_header("mean error, relative");
  const double kept = (1.0 + (kRanks - 1) * (1.0 - kEqualLoss)) / kRanks;
  expect_matches("zero_fill", experiment.error, kept - 1.0, kResolution);
}

}  // namespace
}  // namespace leeway::few_owners
