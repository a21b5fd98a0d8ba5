// Horvitz-Thompson and augmented estimators with contributions of a few packets, some of which are
// lost as a whole. Five ranks make thousands of operations over the library's protocol, in virtual
// time with fixed seeds.
//
// Statements, all within 3 standard errors:
//   * no bias over links that lose 0, 5, 15, 30 and 45 %, independently or in bursts, for flows of
//     any length, in every operation that reduces, with ranks of unequal weight;
//   * no bias with bounded delivery either, which repairs single packets;
//   * if the deadline comes before the repair, the bias is a small part of what was cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/measurement.h"
#include "support/engine_group.h"
#include "support/seeds.h"

namespace leeway::short_flows {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using collective::Request;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 5;
constexpr int kRounds = testing::seeds(2'000, 3'000);
constexpr std::size_t kDatagramBytes = 512;
constexpr std::size_t kPacketElements = 96;  // elements in such a datagram, in whole codec blocks
constexpr std::array<double, kRanks> kLoss = {0, .05, .15, .30, .45};
constexpr Duration kRoundTrip = 200us;

struct Setting {
  // Packets of each contribution to each owner. In an all_reduce of 5 x 1 packets three owners have
  // 2 packets and the others 1, because shards begin at multiples of 64 elements.
  std::size_t packets = 2;
  Estimator estimator = Estimator::horvitz_thompson;
  OperationKind operation = OperationKind::all_reduce;
  double burst = 1;
  Delivery delivery = best_effort(60s);
  bool weighted = false;
  int rounds = kRounds;
};

// Returns a gradient per unit of work. It differs by rank and packet, so a missing packet shows.
double gradient(int rank, std::size_t packet) {
  return (rank + 1) * (1.0 + 0.5 * std::sin(static_cast<double>(packet) + rank));
}

class Experiment {
 public:
  explicit Experiment(const Setting& setting) : setting_(setting), group_(options_for(setting)) {
    const std::size_t count = kRanks * setting.packets * kPacketElements;
    for (int rank = 0; rank < kRanks; ++rank) {
      inputs_[rank].assign(count, 0.0f);
      outputs_[rank].assign(scattered() ? count / kRanks : count, 0.0f);
      for (std::size_t place = 0; place < kRanks * setting.packets; ++place) {
        inputs_[rank][place * kPacketElements] =
            static_cast<float>(weight(rank) * gradient(rank, place % setting.packets));
      }
    }
  }

  Sample error;                  // error of the result's mean, relative to the mean gradient
  std::uint64_t cut = 0;         // operations that the deadline of a rank ended
  std::uint64_t fetched = 0;     // contributions
  std::uint64_t missing = 0;     // contributions
  std::uint64_t reductions = 0;  // contributions expected

  void run() {
    for (int round = 0; round < setting_.rounds && !::testing::Test::HasFailure(); ++round) {
      const auto requests = group_.submit_all([&](Rank rank) { return spec(rank); });
      ASSERT_TRUE(group_.run(requests));
      for (const Request* request : requests) take_report(*request);
      take_results();
    }
    std::printf("%zu packets a flow: of %llu contributions %llu fetched, %llu missing\n",
                setting_.packets, static_cast<unsigned long long>(reductions),
                static_cast<unsigned long long>(fetched), static_cast<unsigned long long>(missing));
  }

 private:
  static testing::GroupOptions options_for(const Setting& setting) {
    testing::GroupOptions options{
        .size = kRanks, .datagram_bytes = kDatagramBytes, .delay = kRoundTrip / 2, .seed = 20251};
    options.faults.link_loss.assign(kLoss.begin(), kLoss.end());
    options.faults.burst = setting.burst;
    options.faults.seed = 7;
    return options;
  }

  bool scattered() const { return setting_.operation == OperationKind::reduce_scatter; }
  double weight(int rank) const { return setting_.weighted ? 1.0 + rank % 3 : 1.0; }

  OperationSpec spec(Rank rank) {
    OperationSpec spec{.kind = setting_.operation,
                       .input = std::span(std::as_const(inputs_[rank])),
                       .output = std::span(outputs_[rank])};
    spec.options.op = ReduceOp::avg;
    spec.options.delivery = setting_.delivery;
    spec.options.estimator = setting_.estimator;
    spec.options.weight = weight(rank);
    return spec;
  }

  void take_report(const Request& request) {
    ASSERT_TRUE(request.status.ok()) << request.status.text();
    cut += request.report.deadline_cut;
    fetched += request.report.contributions_fetched;
    missing += request.report.contributions_missing;
    reductions += kRanks - 1;
  }

  void take_results() {
    const std::size_t shard = setting_.packets * kPacketElements;
    double error_sum = 0.0;
    double mean_sum = 0.0;
    for (int owner = 0; owner < kRanks; ++owner) {
      for (std::size_t packet = 0; packet < setting_.packets; ++packet) {
        double mean = 0.0;
        double units = 0.0;
        for (int rank = 0; rank < kRanks; ++rank) {
          mean += weight(rank) * gradient(rank, packet);
          units += weight(rank);
        }
        mean /= units;
        const std::size_t first = scattered() ? 0 : owner * shard;
        error_sum += outputs_[owner][first + packet * kPacketElements] - mean;
        mean_sum += mean;
      }
    }
    error.add(error_sum / mean_sum);
  }

  Setting setting_;
  testing::EngineGroup group_;
  std::array<std::vector<float>, kRanks> inputs_;
  std::array<std::vector<float>, kRanks> outputs_;
};

// A fifth of the bias that short flows would have if owners did not request lost flows again.
constexpr double kResolution = 0.002;
// Bound on the rounding of float32 results.
constexpr double kExact = 1e-6;

void expect_unbiased(const std::string& name, const Setting& setting) {
  Experiment experiment(setting);
  experiment.run();
  testing::print_header("mean error, relative");
  EXPECT_EQ(experiment.missing, 0u);
  EXPECT_EQ(experiment.cut, 0u);
  // A lost contribution of one packet is requested again, so no contribution is lost, and the only
  // errors are those of rounding.
  if (experiment.error.standard_error() < kExact) {
    EXPECT_NEAR(experiment.error.mean(), 0.0, kExact);
    return;
  }
  expect_matches(name, experiment.error, 0.0, kResolution);
}

struct Case {
  const char* name;
  Setting setting;
};
void PrintTo(const Case& row, std::ostream* out) {
  *out << row.name;
}
class UnbiasedOnShortFlows : public ::testing::TestWithParam<Case> {};

TEST_P(UnbiasedOnShortFlows, OverUnequalAndBurstyLinks) {
  expect_unbiased(GetParam().name, GetParam().setting);
}

constexpr auto kAugmented = Estimator::augmented;
INSTANTIATE_TEST_SUITE_P(
    Of, UnbiasedOnShortFlows,
    ::testing::Values(
        Case{"horvitz_thompson_2_packets", {}},
        Case{"augmented_2_packets", {.estimator = kAugmented}},
        Case{"horvitz_thompson_1_or_2_packets", {.packets = 1}},
        Case{"augmented_1_or_2_packets", {.packets = 1, .estimator = kAugmented}},
        Case{"horvitz_thompson_4_packets", {.packets = 4}},
        Case{"reduce_scatter_2_packets", {.operation = OperationKind::reduce_scatter}},
        Case{"reduce_scatter_1_packet", {.packets = 1, .operation = OperationKind::reduce_scatter}},
        Case{"replica_2_packets", {.operation = OperationKind::replica_reduce}},
        Case{"weighted_2_packets", {.weighted = true}},
        Case{"weighted_augmented_2_packets", {.estimator = kAugmented, .weighted = true}},
        Case{"bursts_of_8_in_4_packets", {.packets = 4, .burst = 8}},
        Case{"bursts_of_8_in_8_packets", {.packets = 8, .burst = 8}},
        Case{"bounded_1_or_2_packets", {.packets = 1, .delivery = bounded(0.5, 60s)}},
        Case{"bounded_2_packets", {.packets = 2, .delivery = bounded(0.5, 60s)}}),
    [](const auto& row) { return std::string(row.param.name); });

// The deadline leaves time for one repair or none. It cuts 8.0 % of the result with flows of one
// packet, and 1.5 % with flows of two. The bias must be far smaller.
TEST(CutShortFlows, AreMadeUpForByEarlierRates) {
  struct Row {
    std::size_t packets;
    double bias_max;
  };
  for (const Row row : {Row{1, 0.010}, Row{2, 0.003}}) {
    Experiment experiment({.packets = row.packets,
                           .operation = OperationKind::reduce_scatter,
                           .delivery = best_effort(2 * kRoundTrip),
                           .rounds = 10'000});
    experiment.run();
    EXPECT_GT(experiment.cut, 1'000u);
    EXPECT_GT(experiment.missing, 1'000u);
    testing::print_header("mean error, relative");
    const double error = experiment.error.standard_error();
    std::printf("%zu packets, deadline of two round trips %27.6f %12.6f %10.6f\n", row.packets,
                experiment.error.mean(), 0.0, error);
    EXPECT_LT(std::abs(experiment.error.mean()) + 3 * error, row.bias_max);
  }
}

}  // namespace
}  // namespace leeway::short_flows
