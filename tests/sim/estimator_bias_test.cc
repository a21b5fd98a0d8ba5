// The library's estimators: 10^4 operations of four ranks over the protocol in virtual time, with
// lost packets. Each estimator's mean error must be the bias that its formula predicts: 0 for those
// that src/math/estimate/README.md calls unbiased. Flows have 16 packets; short_flow_bias_test.cc
// tests flows that may be lost as a whole.
//
// Every rank owns a shard, so one run tests four owners; with unequal links they see different
// losses. Operations are independent, so their scatter gives standard errors. The first elements of
// a packet measure:
//   * one element for each rank, to which only that rank contributes: its mean is the rank's
//     expected weight;
//   * a gradient that differs by rank and packet: its error against the average is the bias.
// Values vary from packet to packet. With equal values, errors of loss rates, which are measured
// over a shard, would cancel within the shard.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "sim/group_round.h"
#include "sim/measurement.h"
#include "support/seeds.h"

namespace leeway {
namespace {

using collective::OperationKind;
using collective::OperationSpec;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 4;
constexpr int kRounds = testing::seeds(3'000, 10'000);
constexpr std::uint32_t kPackets = 16;  // packets of each shard
constexpr std::size_t kDatagramBytes = 512;
constexpr std::size_t kPacketElements = 96;  // elements in such a datagram, in whole codec blocks
// Index of the gradient's element in a packet. The elements before it measure weights.
constexpr std::size_t kGradientElement = kRanks;
constexpr double kGuess = 3.0;  // mean of an external control variate
using PerRank = std::array<double, kRanks>;

struct Network {
  const char* name;
  PerRank loss;  // by source
  double burst;  // mean length of a burst in packets; 1 = independent losses
};
void PrintTo(const Network& network, std::ostream* out) {
  *out << network.name;
}
constexpr Network kEqual{"equal 10 %", {.1, .1, .1, .1}, 1};
constexpr Network kUnequal{"unequal 0/10/10/50 %", {0, .1, .1, .5}, 1};
constexpr Network kBursty{"10 % in bursts of 4", {.1, .1, .1, .1}, 4};

struct Method {
  Estimator estimator = Estimator::ratio;
  bool external_control = false;
  OperationKind operation = OperationKind::reduce_scatter;
};

// Returns a factor that differs in every packet and has mean 1 over a shard.
double amplitude(std::uint32_t packet) {
  return 2.0 * (packet + 1) / (kPackets + 1);
}
double gradient(int rank, std::uint32_t packet) {
  return (rank + 1) * (1.0 + 0.5 * std::sin(packet + rank));
}

double mean_gradient(int rank) {
  double sum = 0.0;
  for (std::uint32_t packet = 0; packet < kPackets; ++packet) sum += gradient(rank, packet);
  return sum / kPackets;
}
double average_gradient(std::uint32_t packet) {
  double sum = 0.0;
  for (int rank = 0; rank < kRanks; ++rank) sum += gradient(rank, packet);
  return sum / kRanks;
}

std::vector<float> make_input(int rank) {
  std::vector<float> input(kRanks * kPackets * kPacketElements, 0.0f);
  for (std::size_t place = 0; place < kRanks * kPackets; ++place) {
    const auto packet = static_cast<std::uint32_t>(place % kPackets);
    float* const elements = input.data() + place * kPacketElements;
    elements[rank] = static_cast<float>(amplitude(packet));
    elements[kGradientElement] = static_cast<float>(gradient(rank, packet));
  }
  return input;
}

// Returns the control variate: a wrong guess of the gradient. Its error varies by packet, because a
// constant error would cancel over a shard.
std::vector<float> make_guess() {
  std::vector<float> guess(kRanks * kPackets * kPacketElements);
  for (std::size_t i = 0; i < guess.size(); ++i) {
    guess[i] = static_cast<float>(
        kGuess * amplitude(static_cast<std::uint32_t>(i / kPacketElements % kPackets)));
  }
  return guess;
}

struct OwnerSamples {
  Sample error;
  std::array<Sample, kRanks> weight;

  // Adds the result of an operation. `shard` holds the reduced values of one owner.
  void add(std::span<const float> shard) {
    double sum = 0.0;
    PerRank weights{};
    for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
      const float* const elements = shard.data() + packet * kPacketElements;
      sum += elements[kGradientElement] - average_gradient(packet);
      for (int rank = 0; rank < kRanks; ++rank) weights[rank] += elements[rank];
    }
    error.add(sum / kPackets);
    for (int rank = 0; rank < kRanks; ++rank) weight[rank].add(weights[rank] / kPackets);
  }
};
using Samples = std::array<OwnerSamples, kRanks>;

class Experiment {
 public:
  Experiment(const Network& network, const Method& method)
      : method_(method), group_(options_for(network)), control_(make_guess()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      inputs_.push_back(make_input(rank));
      outputs_.emplace_back(all_reduce() ? inputs_[rank].size() : inputs_[rank].size() / kRanks);
    }
  }

  Samples run() {
    Samples samples;
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round)
      run_once(samples);
    return samples;
  }

 private:
  static testing::GroupOptions options_for(const Network& network) {
    testing::GroupOptions options{.size = kRanks, .datagram_bytes = kDatagramBytes, .seed = 20251};
    options.faults.link_loss.assign(network.loss.begin(), network.loss.end());
    options.faults.burst = network.burst;
    options.faults.seed = 7;
    return options;
  }

  bool all_reduce() const { return method_.operation == OperationKind::all_reduce; }

  void run_once(Samples& samples) {
    testing::run_round(group_, [&](Rank rank) {
      OperationSpec spec{.kind = method_.operation,
                         .input = std::span(std::as_const(inputs_[rank])),
                         .output = std::span(outputs_[rank])};
      spec.options.op = ReduceOp::avg;
      spec.options.delivery = best_effort(std::chrono::seconds(60));
      spec.options.estimator = method_.estimator;
      if (method_.external_control) spec.options.control_variate = control_;
      return spec;
    });
    if (::testing::Test::HasFailure()) return;
    if (all_reduce()) return take_agreed(samples);
    for (int rank = 0; rank < kRanks; ++rank) samples[rank].add(outputs_[rank]);
  }

  void take_agreed(Samples& samples) {
    for (int rank = 1; rank < kRanks; ++rank)
      ASSERT_EQ(outputs_[rank], outputs_[0]) << "rank " << rank;
    const std::size_t count = kPackets * kPacketElements;
    for (int owner = 0; owner < kRanks; ++owner) {
      samples[owner].add(std::span(outputs_[0]).subspan(owner * count, count));
    }
  }

  Method method_;
  testing::EngineGroup group_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<float>> outputs_;
  std::vector<float> control_;
};

// --- predictions: expected weight of every rank for one owner ---

double loss_into(const Network& network, int owner, int rank) {
  return rank == owner ? 0.0 : network.loss[rank];
}

// Calls visit(mask, probability) for every set of ranks whose packets may arrive.
template <typename Visit>
void for_each_arrival(const Network& network, int owner, Visit visit) {
  for (unsigned mask = 0; mask < 1u << kRanks; ++mask) {
    double probability = 1.0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const double loss = loss_into(network, owner, rank);
      probability *= (mask >> rank & 1) != 0 ? 1.0 - loss : loss;
    }
    if (probability > 0.0) visit(mask, probability);
  }
}

PerRank ratio_weights(const Network& network, int owner) {
  PerRank weights{};
  for_each_arrival(network, owner, [&](unsigned mask, double probability) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if ((mask >> rank & 1) != 0) weights[rank] += probability / std::popcount(mask);
    }
  });
  return weights;
}

PerRank zero_fill_weights(const Network& network, int owner) {
  PerRank weights;
  for (int rank = 0; rank < kRanks; ++rank)
    weights[rank] = (1.0 - loss_into(network, owner, rank)) / kRanks;
  return weights;
}

// The owner's weight is 1 / kRanks, or 1 if no other contribution arrived.
PerRank stratified_weights(const Network& network, int owner) {
  double alone = 1.0;
  for (int rank = 0; rank < kRanks; ++rank) alone *= rank == owner ? 1.0 : network.loss[rank];
  PerRank weights;
  weights.fill((1.0 - alone) / kRanks);
  weights[owner] = 1.0 / kRanks + alone * (kRanks - 1.0) / kRanks;
  return weights;
}

// All contributions have equal weights, the owner's too. If none is left, the result is 0.
PerRank symmetric_weights(const Network& network, int owner) {
  (void)owner;
  PerRank weights;
  weights.fill((1.0 - std::pow(network.loss[0], kRanks)) / kRanks);
  return weights;
}

// The estimator divides by each link's own rate of arrival. If a link delivered nothing, the owner
// requests the contribution again. So all weights are equal.
PerRank fair_weights(const Network& network, int owner) {
  (void)network;
  (void)owner;
  PerRank weights;
  weights.fill(1.0 / kRanks);
  return weights;
}

double bias_of(const PerRank& weights) {
  double bias = 0.0;
  for (int rank = 0; rank < kRanks; ++rank)
    bias += (weights[rank] - 1.0 / kRanks) * mean_gradient(rank);
  return bias;
}

using Predict = PerRank (*)(const Network&, int owner);

std::string label(const Network& network, const std::string& what, int owner) {
  return std::string(network.name) + ", " + what + ", owner " + std::to_string(owner);
}

// Limit on standard errors: a quarter of the ratio rule's bias at 10 % loss, so that a bias of this
// size is found.
constexpr double kResolution = 0.005;
// Bound on the rounding of float32 results.
constexpr double kExact = 1e-7;

void expect_bias(const Network& network, const Method& method, Predict predict) {
  const std::string name(to_string(method.estimator));
  const Samples samples = Experiment(network, method).run();
  testing::print_header("mean error");
  for (int owner = 0; owner < kRanks; ++owner) {
    expect_matches(label(network, name, owner), samples[owner].error,
                   bias_of(predict(network, owner)), kResolution);
  }
}

void expect_weights(const Network& network, const Method& method, Predict predict) {
  const std::string name(to_string(method.estimator));
  const Samples samples = Experiment(network, method).run();
  testing::print_header("expected weights");
  for (int owner = 0; owner < kRanks; ++owner) {
    const PerRank weights = predict(network, owner);
    for (int rank = 0; rank < kRanks; ++rank) {
      const Sample& weight = samples[owner].weight[rank];
      // With some estimators the weight of a rank behind a link without loss is constant.
      if (weight.standard_error() < kExact) {
        EXPECT_NEAR(weight.mean(), weights[rank], kExact)
            << label(network, name, owner) << ", rank " << rank;
        continue;
      }
      expect_matches(label(network, name, owner) + ", rank " + std::to_string(rank), weight,
                     weights[rank], kResolution);
    }
    expect_matches(label(network, name, owner), samples[owner].error, bias_of(weights),
                   kResolution);
  }
}

class UnbiasedOnAnyLinks : public ::testing::TestWithParam<Network> {};
INSTANTIATE_TEST_SUITE_P(Links, UnbiasedOnAnyLinks, ::testing::Values(kUnequal, kBursty));

TEST_P(UnbiasedOnAnyLinks, HorvitzThompson) {
  expect_bias(GetParam(), {.estimator = Estimator::horvitz_thompson}, fair_weights);
}

TEST_P(UnbiasedOnAnyLinks, AugmentedAroundTheOwnersContribution) {
  expect_bias(GetParam(), {.estimator = Estimator::augmented}, fair_weights);
}

TEST(UnbiasedOnUnequalLinks, AugmentedAroundAWrongGuess) {
  const Method method{.estimator = Estimator::augmented, .external_control = true};
  expect_bias(kUnequal, method, fair_weights);
}

TEST(UnbiasedOnUnequalLinks, HorvitzThompsonThroughAnAllReduce) {
  const Method method{.estimator = Estimator::horvitz_thompson,
                      .operation = OperationKind::all_reduce};
  expect_weights(kUnequal, method, fair_weights);
}

TEST(UnbiasedOnEqualLinks, Stratified) {
  expect_weights(kEqual, {.estimator = Estimator::stratified}, stratified_weights);
}

TEST(UnbiasedOnEqualLinks, SymmetricRatio) {
  expect_weights(kEqual, {.estimator = Estimator::symmetric_ratio}, symmetric_weights);
}

TEST(KnownBias, OfRatioOnUnequalLinks) {
  expect_weights(kUnequal, {.estimator = Estimator::ratio}, ratio_weights);
}

TEST(KnownBias, OfRatioOnEqualLinks) {
  expect_weights(kEqual, {.estimator = Estimator::ratio}, ratio_weights);
}

TEST(KnownBias, OfRatioInBursts) {
  expect_bias(kBursty, {.estimator = Estimator::ratio}, ratio_weights);
}

TEST(KnownBias, OfZeroFillOnUnequalLinks) {
  expect_weights(kUnequal, {.estimator = Estimator::zero_fill}, zero_fill_weights);
}

}  // namespace
}  // namespace leeway
