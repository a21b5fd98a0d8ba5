// Reductions whose contributions are quantised must be unbiased, give the same result whatever the
// network did, and report the noise that they have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kEncodedSize = 4;

// Returns a near normal value: the sum of four uniform draws, one of them common to all ranks. Its
// mean is 0 and its variance 1/3.
float gradient(Rank rank, std::size_t i) {
  const auto uniform = [&](std::uint32_t c, std::uint32_t d) {
    return to_unit(keyed_hash(11, static_cast<std::uint32_t>(i), 0, c, d)) - 0.5;
  };
  double sum = uniform(0, 0);
  for (std::uint32_t k = 1; k < 4; ++k) sum += uniform(k, rank + 1u);
  return static_cast<float>(sum);
}

struct Job {
  CollectiveOptions options;
  std::size_t count = 20000;
  double loss = 0.0;
  std::size_t datagram_bytes = 1472;
};

CollectiveOptions averaging(const char* codec, Delivery delivery = exact(10s)) {
  CollectiveOptions options;
  options.op = ReduceOp::avg;
  options.delivery = delivery;
  options.codec = parse_codec(codec).value();
  return options;
}

// A group that reduces the same gradients again and again, with other random bits each time.
class Reducer {
 public:
  explicit Reducer(const Job& job) : job_(job), group_(network(job)) {
    for (Rank rank = 0; rank < kEncodedSize; ++rank) {
      for (std::size_t i = 0; i < job.count; ++i) inputs_[rank].push_back(gradient(rank, i));
      residuals_[rank].resize(job.count);
    }
  }

  void use_residuals() { with_residuals_ = true; }

  void run() {
    requests_ = group_.submit_all([&](Rank rank) {
      outputs_[rank].assign(job_.count, 0.0f);
      OperationSpec spec{.kind = OperationKind::all_reduce,
                         .input = std::span<const float>(inputs_[rank]),
                         .output = std::span(outputs_[rank])};
      spec.options = job_.options;
      if (with_residuals_) spec.options.residual = residuals_[rank];
      return spec;
    });
    ASSERT_TRUE(group_.run(requests_));
    for (const Request* request : requests_)
      ASSERT_TRUE(request->status.ok()) << request->status.c_str();
    for (Rank rank = 1; rank < kEncodedSize; ++rank)
      ASSERT_EQ(outputs_[rank], outputs_[0]) << "rank " << rank;
  }

  const std::vector<float>& result() const { return outputs_[0]; }
  const CollectiveReport& report(Rank rank) const { return requests_[rank]->report; }
  double truth(std::size_t i) const {
    double sum = 0.0;
    for (const auto& input : inputs_) sum += input[i];
    return sum / kEncodedSize;
  }
  double mean_square_error(std::span<const double> values) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += (values[i] - truth(i)) * (values[i] - truth(i));
    return sum / static_cast<double>(values.size());
  }
  double mean_square_error() const {
    return mean_square_error(std::vector<double>(result().begin(), result().end()));
  }
  // Returns the mean of the results of `calls` calls.
  std::vector<double> average_of(int calls) {
    std::vector<double> mean(job_.count);
    for (int call = 0; call < calls; ++call) {
      run();
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] += static_cast<double>(result()[i]) / calls;
    }
    return mean;
  }

 private:
  static GroupOptions network(const Job& job) {
    GroupOptions options{.size = kEncodedSize, .datagram_bytes = job.datagram_bytes};
    options.faults.loss = job.loss;
    options.faults.seed = 3;
    return options;
  }

  Job job_;
  bool with_residuals_ = false;
  EngineGroup group_;
  std::array<std::vector<float>, kEncodedSize> inputs_, outputs_, residuals_;
  std::vector<Request*> requests_;
};

class StochasticReduction : public ::testing::TestWithParam<const char*> {};

// The squared error of a mean of n independent results is 1/n of the error of one result, but a
// bias would stay. With 20,000 elements, the ratio's standard error is below 2 %.
TEST_P(StochasticReduction, AveragesOutOverCalls) {
  constexpr int kCalls = 50;
  Reducer reducer({.options = averaging(GetParam())});
  reducer.run();
  const double one = reducer.mean_square_error();
  const double many = reducer.mean_square_error(reducer.average_of(kCalls));
  EXPECT_NEAR(many * kCalls / one, 1.0, 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, StochasticReduction,
                         ::testing::Values("fp8_e5m2", "mxfp6_e3m2", "mxfp4", "nvfp4",
                                           "nvfp4:rotate", "luq", "int8", "sparse:2/4"),
                         [](const auto& row) {
                           std::string name(row.param);
                           std::erase_if(name, [](char c) {
                             return std::isalnum(static_cast<unsigned char>(c)) == 0;
                           });
                           return name;
                         });

TEST(NearestReduction, KeepsItsBias) {
  Reducer reducer({.options = averaging("nvfp4:nearest")});
  reducer.run();
  const double one = reducer.mean_square_error();
  // Rounding to nearest is not random, so averaging over calls does not remove its error.
  EXPECT_GT(reducer.mean_square_error(reducer.average_of(5)), 0.9 * one);
}

TEST(ReducedNoise, ReportedIsWhatTheResultHas) {
  CollectiveOptions options = averaging("nvfp4");
  options.spread_codec = parse_codec("bf16").value();
  Reducer reducer({.options = options, .count = 400000});
  reducer.run();
  double reported = 0.0;
  for (Rank rank = 0; rank < kEncodedSize; ++rank) {
    const NoiseReport& noise = reducer.report(rank).noise;
    ASSERT_TRUE(noise.measured);
    EXPECT_EQ(noise.loss_variance, 0.0);
    reported += noise.quantisation_variance / kEncodedSize;
  }
  EXPECT_NEAR(reported / reducer.mean_square_error(), 1.0, 0.05);  // from an eighth of the packets
  const NoiseReport& noise = reducer.report(0).noise;
  EXPECT_NEAR(noise.gradient_mean_square, 1.0 / 12,
              0.02);  // the shared quarter; the part that ranks do not share is dispersion
  EXPECT_NEAR(noise.dispersion, 3.0 / 12, 0.02);
  EXPECT_NEAR(noise.ratio, std::sqrt(noise.gradient_mean_square / noise.quantisation_variance),
              1e-9);
}

TEST(ReducedNoise, OfLossAloneIsReportedForNativeTensors) {
  Reducer reducer({.options = averaging("native", best_effort(10s)), .count = 400000, .loss = 0.2});
  reducer.run();
  const NoiseReport& noise = reducer.report(1).noise;
  ASSERT_TRUE(noise.measured);
  EXPECT_EQ(noise.quantisation_variance, 0.0);
  EXPECT_GT(noise.loss_variance, 0.0);
  EXPECT_LT(noise.ratio, std::numeric_limits<double>::infinity());
}

TEST(ReducedNoise, IsNotMeasuredWhereThereIsNone) {
  Reducer reducer({.options = averaging("native")});
  reducer.run();
  EXPECT_FALSE(reducer.report(0).noise.measured);
  EXPECT_TRUE(std::isinf(reducer.report(0).noise.ratio));
}

TEST(EncodedReduction, RepairedPacketsHaveTheSameBytes) {
  for (const char* codec : {"nvfp4", "mxfp8_e5m2:rotate", "luq", "sparse:1/4"}) {
    Reducer quiet({.options = averaging(codec)});
    Reducer lossy({.options = averaging(codec), .loss = 0.3});
    quiet.run();
    lossy.run();
    EXPECT_GT(lossy.report(0).loss_first_pass, 0.1);
    EXPECT_EQ(quiet.result(), lossy.result()) << codec;
  }
}

TEST(EncodedReduction, DependsOnPacketSizesOnlyThroughPacketScales) {
  for (const char* codec : {"mxfp4", "mxfp6_e2m3", "fp8_e4m3_block", "bf16:stochastic"}) {
    Reducer small({.options = averaging(codec), .datagram_bytes = 600});
    Reducer large({.options = averaging(codec), .datagram_bytes = 2000});  // all ranks own
    small.run();
    large.run();
    EXPECT_EQ(small.result(), large.result()) << codec;
  }
}

TEST(EncodedReduction, HalvesMayTravelDifferently) {
  CollectiveOptions options = averaging("nvfp4:stochastic");
  options.spread_codec = parse_codec("fp32").value();
  Reducer up_only({.options = options});
  up_only.run();
  options.spread_codec = parse_codec("nvfp4:nearest").value();
  Reducer both({.options = options});
  both.run();
  EXPECT_GT(both.mean_square_error(), 1.5 * up_only.mean_square_error());
  EXPECT_LT(both.report(0).bytes_sent, up_only.report(0).bytes_sent);
}

// Each step has the same gradient, so rounding to nearest repeats its error. The residual carries
// the error into the next step.
TEST(ErrorFeedback, MakesUpForNearestRoundingOverSteps) {
  constexpr int kCalls = 20;
  CollectiveOptions options = averaging("nvfp4:nearest");
  options.spread_codec = parse_codec("fp32").value();
  Reducer without({.options = options});
  Reducer with({.options = options});
  with.use_residuals();
  const double biased = without.mean_square_error(without.average_of(kCalls));
  const double compensated = with.mean_square_error(with.average_of(kCalls));
  EXPECT_LT(compensated,
            biased / 20);  // the error of the mean falls as 1/calls, its square as 1/400
}

TEST(ErrorFeedback, IsNotDisturbedByRepairs) {
  const CollectiveOptions options = averaging("mxfp4:nearest");
  Reducer quiet({.options = options});
  Reducer lossy({.options = options, .loss = 0.3});
  for (Reducer* reducer : {&quiet, &lossy}) {
    reducer->use_residuals();
    for (int call = 0; call < 3; ++call) reducer->run();
  }
  EXPECT_EQ(quiet.result(), lossy.result());
}

TEST(EncodedReduceScatter, TakesBlocksOfAnySize) {
  constexpr std::size_t kBlock = 1003;  // no multiple of any codec's block
  for (const char* codec : {"nvfp4", "mxfp8_e4m3:rotate", "luq", "sparse:2/4"}) {
    EngineGroup group({.size = kEncodedSize});
    std::vector<float> inputs[kEncodedSize];
    std::vector<float> outputs[kEncodedSize];
    const auto requests = group.submit_all([&](Rank rank) {
      for (std::size_t i = 0; i < kBlock * kEncodedSize; ++i)
        inputs[rank].push_back(gradient(rank, i));
      outputs[rank].resize(kBlock);
      OperationSpec spec{.kind = OperationKind::reduce_scatter,
                         .input = std::span<const float>(inputs[rank]),
                         .output = std::span(outputs[rank])};
      spec.options = averaging(codec);
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    double error = 0.0;
    double signal = 0.0;
    for (Rank rank = 0; rank < kEncodedSize; ++rank) {
      ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.c_str();
      for (std::size_t i = 0; i < kBlock; ++i) {
        double truth = 0.0;
        for (const auto& input : inputs) truth += input[rank * kBlock + i] / kEncodedSize;
        error += (outputs[rank][i] - truth) * (outputs[rank][i] - truth);
        signal += truth * truth;
      }
    }
    EXPECT_LT(error, signal) << codec;
    EXPECT_GT(error, 0.0) << codec;
  }
}

TEST(EncodedMovement, BroadcastLeavesTheSameBitsEverywhere) {
  for (const char* codec : {"bf16", "nvfp4", "mxfp6_e3m2", "int8", "luq"}) {
    EngineGroup group({.size = kEncodedSize});
    std::vector<float> data[kEncodedSize];
    const auto requests = group.submit_all([&](Rank rank) {
      for (std::size_t i = 0; i < 5001; ++i) data[rank].push_back(gradient(rank, i));
      OperationSpec spec{.kind = OperationKind::broadcast,
                         .input = std::span(data[rank]),
                         .output = std::span(data[rank]),
                         .peer = 2};
      spec.options.codec = parse_codec(codec).value();
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    double error = 0.0;
    for (std::size_t i = 0; i < data[2].size(); ++i) error += std::abs(data[2][i] - gradient(2, i));
    EXPECT_GT(error, 0.0) << "the root adopts what the others read";
    for (const auto& copy : data) EXPECT_EQ(copy, data[2]) << codec;
  }
}

}  // namespace
}  // namespace leeway::collective
