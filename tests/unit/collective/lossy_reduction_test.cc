// The result of a lossy reduction depends only on which packets arrived. The test network records
// them, and the reference is computed from the record, element by element, with the scales of
// src/math/estimate.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "estimate/scale_plan.h"
#include "schedule/packet_grid.h"
#include "schedule/shard_map.h"
#include "support/arrival_record.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using protocol::FlowKind;
using testing::ArrivalRecord;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kLossyRanks = 4;

struct Setting {
  Estimator estimator = Estimator::ratio;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 60000;
  double loss = 0.3;
  CodecOptions codec;
  bool weighted = false;
  bool control = false;
  std::uint64_t seed = 1;
  float factor = 1.0f;  // scales all contributions
};

float value(Rank rank, std::size_t i) {
  return std::sin(static_cast<float>(i * 3 + rank)) * (1.0f + rank);
}

// Returns the first `count` values of a rank. They are computed once, because a statistic takes
// hundreds of calls.
std::span<const float> values(Rank rank, std::size_t count) {
  static std::array<std::vector<float>, kLossyRanks> all;
  for (std::size_t i = all[rank].size(); i < count; ++i) all[rank].push_back(value(rank, i));
  return std::span(all[rank]).first(count);
}

class LossyAllReduce {
 public:
  explicit LossyAllReduce(const Setting& setting)
      : setting_(setting), group_(network(setting)), record_(group_) {
    for (Rank rank = 0; rank < kLossyRanks; ++rank) {
      const std::span<const float> own = values(rank, setting.count);
      for (const float contribution : own) data_[rank].push_back(setting.factor * contribution);
    }
    for (std::size_t i = 0; i < setting.count && setting.control; ++i)
      control_.push_back(std::cos(static_cast<float>(i)));
  }

  void run() {
    requests_ = group_.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = std::span(data_[rank]);
      spec.output = std::span(data_[rank]);
      spec.options = {.op = setting_.op, .delivery = best_effort(10s), .codec = setting_.codec};
      spec.options.estimator = setting_.estimator;
      spec.options.weight = weight(rank);
      spec.options.control_variate = control_;
      return spec;
    });
    ASSERT_TRUE(group_.run(requests_));
    for (const Request* request : requests_)
      ASSERT_TRUE(request->status.ok()) << request->status.text();
  }

  double weight(Rank rank) const {
    constexpr double kWeights[kLossyRanks] = {1.0, 2.5, 0.0, 4.0};
    return setting_.weighted ? kWeights[rank] : 1.0;
  }
  codec::Format format() const {
    return codec::format_of(setting_.codec, DataType::f32, codec::Purpose::sum);
  }
  schedule::Shard shard(Rank owner) const {
    const std::size_t room = GroupOptions().datagram_bytes - wire::kDataHeaderBytes;
    return schedule::ShardMap::few(setting_.count, kLossyRanks, format().elements_for(room),
                                   0)[owner];
  }
  schedule::PacketGrid grid(Rank owner) const {
    const std::size_t room = GroupOptions().datagram_bytes - wire::kDataHeaderBytes;
    return schedule::PacketGrid(shard(owner).count,
                                static_cast<std::uint32_t>(format().elements_for(room)), 4);
  }
  bool arrived(Rank from, Rank owner, std::uint32_t index) const {
    return from == owner || record_.arrived(0, FlowKind::reduce, from, owner, index);
  }
  std::uint32_t arrived_of(Rank from, Rank owner) const {
    std::uint32_t total = 0;
    for (std::uint32_t i = 0; i < grid(owner).packets(); ++i) total += arrived(from, owner, i);
    return total;
  }

  estimate::ScalePlan plan(Rank owner) const {
    std::vector<estimate::LinkTally> tallies(kLossyRanks);
    for (Rank rank = 0; rank < kLossyRanks; ++rank) {
      tallies[rank] = {.sent = grid(owner).packets(),
                       .arrived = arrived_of(rank, owner),
                       .weight = weight(rank)};
    }
    return estimate::ScalePlan({.estimator = setting_.estimator,
                                .op = setting_.op,
                                .links = tallies,
                                .owner = owner,
                                .external_control = setting_.control,
                                .seed = setting_.seed});
  }
  bool lost_something(Rank owner) const {
    bool lost = false;
    for (Rank rank = 0; rank < kLossyRanks; ++rank)
      lost |= arrived_of(rank, owner) < grid(owner).packets();
    return lost;
  }

  std::vector<std::byte> encoded(std::span<const float> values, const codec::Place& place) const {
    std::vector<std::byte> bytes(format().encoded_bytes(values.size()));
    codec::encode(format(), values, place, bytes);
    return bytes;
  }
  codec::Place place(Rank source, Rank owner, std::uint32_t index) const {
    return {setting_.seed, 0, source, shard(owner).offset + grid(owner).packet_offset({index})};
  }
  std::vector<float> contribution(Rank rank, Rank owner, std::uint32_t index) const {
    const std::size_t first = shard(owner).offset + grid(owner).packet_offset({index});
    std::vector<float> values(grid(owner).packet_elements({index}));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, first + i);
    return values;
  }
  // Sums the terms in rank order. Rotated contributions are summed first and rotated back together;
  // then the owner's own is added.
  std::vector<float> weighted_sum(Rank owner, std::uint32_t index,
                                  std::span<const float> scales) const {
    std::vector<float> sum(grid(owner).packet_elements({index}), 0.0f);
    bool first = true;
    const auto add = [&](const codec::Format& term_format, ByteSpan bytes, float scale) {
      first ? codec::accumulate_first(term_format, bytes, scale, sum)
            : codec::accumulate(term_format, bytes, scale, sum);
      first = false;
    };
    const auto add_own = [&] {
      const std::vector<float> own = contribution(owner, owner, index);
      add(codec::format_of(Codec::native, DataType::f32), std::as_bytes(std::span(own)),
          scales[owner]);
    };
    const bool rotated = setting_.codec.rotate;
    for (Rank rank = 0; rank < kLossyRanks; ++rank) {
      if (scales[rank] == 0.0f) continue;
      if (rank == owner && !rotated) add_own();
      if (rank != owner)
        add(format(), encoded(contribution(rank, owner, index), place(rank, owner, index)),
            scales[rank]);
    }
    if (rotated && !first) codec::restore(format(), place(owner, owner, index), sum);
    if (rotated && scales[owner] != 0.0f) add_own();
    return sum;
  }

  std::vector<float> reference(Rank owner) const {
    const auto scale_plan = plan(owner);
    const bool lost = lost_something(owner);
    std::vector<float> result;
    for (std::uint32_t index = 0; index < grid(owner).packets(); ++index) {
      std::vector<std::uint64_t> mask(1, 0);
      for (Rank rank = 0; rank < kLossyRanks; ++rank)
        mask[0] |= std::uint64_t{arrived(rank, owner, index)} << rank;
      std::vector<float> scales(kLossyRanks);
      estimate::BlockScales block;
      if (lost) {
        block = scale_plan.scales(mask, index, scales);
      } else {
        scale_plan.complete_scales(scales);
      }
      std::vector<float> sum = weighted_sum(owner, index, scales);
      for (std::size_t i = 0; i < sum.size() && block.control != 0.0f; ++i) {
        sum[i] +=
            block.control * control_[shard(owner).offset + grid(owner).packet_offset({index}) + i];
      }
      codec::decode(format(), encoded(sum, place(owner, owner, index)), place(owner, owner, index),
                    sum);
      result.insert(result.end(), sum.begin(), sum.end());
    }
    return result;
  }

  void expect_reference() const {
    for (Rank owner = 0; owner < kLossyRanks; ++owner) {
      const std::vector<float> want = reference(owner);
      for (Rank rank = 0; rank < kLossyRanks; ++rank) {
        const auto got = std::span(data_[rank]).subspan(shard(owner).offset, want.size());
        EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin()))
            << "shard " << owner << " at rank " << rank;
      }
    }
  }

  const Setting& setting() const { return setting_; }
  EngineGroup& group() { return group_; }
  const ArrivalRecord& record() const { return record_; }
  const CollectiveReport& report(Rank rank) const { return requests_[rank]->report; }
  const std::vector<float>& data(Rank rank) const { return data_[rank]; }

 private:
  static GroupOptions network(const Setting& setting) {
    GroupOptions options{.size = kLossyRanks, .seed = setting.seed};
    options.faults.loss = setting.loss;
    options.faults.seed = setting.seed;
    return options;
  }

  Setting setting_;
  EngineGroup group_;
  ArrivalRecord record_;
  std::array<std::vector<float>, kLossyRanks> data_;
  std::vector<float> control_;
  std::vector<Request*> requests_;
};

class LossyAllReduceEstimator : public ::testing::TestWithParam<Estimator> {};

TEST_P(LossyAllReduceEstimator, SumEqualsTheReferenceOverWhatArrived) {
  for (const double loss : {0.02, 0.3}) {
    for (const std::size_t count : {100, 1000, 60000}) {
      LossyAllReduce call({.estimator = GetParam(), .count = count, .loss = loss, .seed = count});
      call.run();
      call.expect_reference();
    }
  }
}

TEST_P(LossyAllReduceEstimator, WeightedAverageEqualsTheReferenceOverWhatArrived) {
  LossyAllReduce call({.estimator = GetParam(), .op = ReduceOp::avg, .weighted = true});
  call.run();
  call.expect_reference();
}

class LossyAllReduceCodec : public ::testing::TestWithParam<std::tuple<Estimator, std::string>> {};

// All ranks must hold the bits of the reference, which tests agreement and the estimator's formula.
TEST_P(LossyAllReduceCodec, AverageEqualsTheReferenceOverWhatArrived) {
  const auto [estimator, text] = GetParam();
  const auto codec = parse_codec(text);
  ASSERT_TRUE(codec.ok()) << codec.status().c_str();
  LossyAllReduce call(
      {.estimator = estimator, .op = ReduceOp::avg, .count = 20000, .codec = *codec});
  call.run();
  call.expect_reference();
}

INSTANTIATE_TEST_SUITE_P(
    All, LossyAllReduceCodec,
    ::testing::Combine(::testing::Values(Estimator::ratio, Estimator::horvitz_thompson),
                       ::testing::Values("fp16", "bf16", "bf16:stochastic", "fp32:rotate",
                                         "fp8_e4m3", "fp8_e5m2_block", "mxfp8_e4m3", "mxfp6_e2m3",
                                         "mxfp6_e3m2:nearest", "mxfp4", "nvfp4",
                                         "nvfp4:nearest:rotate", "nvfp4_te", "luq:draws=2",
                                         "int8:clip", "sparse:1/2", "sparse:26/256:rotate")),
    [](const auto& row) {
      std::string name =
          std::string(to_string(std::get<0>(row.param))) + "_" + std::get<1>(row.param);
      std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
      return name;
    });

TEST_P(LossyAllReduceEstimator, WithoutLossIsThePlainSum) {
  LossyAllReduce call({.estimator = GetParam(), .loss = 0.0});
  call.run();
  for (std::size_t i = 0; i < call.setting().count; ++i) {
    const float sum = ((value(0, i) + value(1, i)) + value(2, i)) + value(3, i);
    ASSERT_EQ(call.data(2)[i], sum) << i;
  }
  EXPECT_EQ(call.report(2).loss, 0.0);
  EXPECT_EQ(call.report(2).variance_estimate, 0.0);
}

INSTANTIATE_TEST_SUITE_P(All, LossyAllReduceEstimator,
                         ::testing::Values(Estimator::zero_fill, Estimator::ratio,
                                           Estimator::symmetric_ratio, Estimator::stratified,
                                           Estimator::horvitz_thompson, Estimator::augmented),
                         [](const auto& row) {
                           std::string name(to_string(row.param));
                           std::erase(name, '_');
                           return name;
                         });

TEST(LossyAllReduceControl, AnExternalGuessTakesTheShareOfWhatWasLost) {
  LossyAllReduce call({.estimator = Estimator::augmented, .op = ReduceOp::avg, .control = true});
  call.run();
  call.expect_reference();
}

TEST(LossyAllReduceReport, CountsOfEveryPeerAreThoseOfTheNetwork) {
  LossyAllReduce call({});
  call.run();
  for (Rank rank = 0; rank < kLossyRanks; ++rank) {
    const CollectiveReport& report = call.report(rank);
    ASSERT_EQ(report.peers.size(), std::size_t{kLossyRanks - 1});
    std::uint64_t expected = 0, arrived = 0, first_pass = 0;
    for (const PeerReport& row : report.peers) {
      const std::uint32_t reduce_packets = call.grid(rank).packets();
      const std::uint32_t spread_packets = call.grid(row.rank).packets();
      std::uint64_t repaired = 0;
      for (std::uint32_t i = 0; i < spread_packets; ++i) {
        repaired +=
            call.record().copies(0, FlowKind::spread, row.rank, rank, i).first_pass_arrived == 0;
      }
      EXPECT_EQ(row.expected, reduce_packets + spread_packets);
      EXPECT_EQ(row.arrived, call.arrived_of(row.rank, rank) + spread_packets);
      EXPECT_EQ(row.repaired, repaired);
      EXPECT_GT(row.repaired, 0u);
      EXPECT_EQ(row.duplicate + row.late, 0u);
      expected += row.expected;
      arrived += row.arrived;
      first_pass += row.arrived - row.repaired;
    }
    EXPECT_DOUBLE_EQ(report.loss, 1.0 - static_cast<double>(arrived) / expected);
    EXPECT_DOUBLE_EQ(report.loss_first_pass, 1.0 - static_cast<double>(first_pass) / expected);
    EXPECT_TRUE(report.complete);
    EXPECT_FALSE(report.deadline_cut);
    EXPECT_EQ(report.elements_missing, 0u);
  }
}

TEST(LossyAllReduceReport, ContributorsAreCountedPacketByPacket) {
  LossyAllReduce call({.estimator = Estimator::stratified});
  call.run();
  for (Rank owner = 0; owner < kLossyRanks; ++owner) {
    std::vector<std::uint64_t> histogram(kLossyRanks + 1, 0);
    double total = 0;
    for (std::uint32_t i = 0; i < call.grid(owner).packets(); ++i) {
      int contributors = 0;
      for (Rank rank = 0; rank < kLossyRanks; ++rank) contributors += call.arrived(rank, owner, i);
      ++histogram[contributors];
      total += contributors;
    }
    const ContributorStats& stats = call.report(owner).contributors;
    EXPECT_EQ(stats.histogram, histogram);
    EXPECT_DOUBLE_EQ(stats.mean, total / call.grid(owner).packets());
    EXPECT_GT(stats.histogram[stats.min], 0u);
  }
}

double variance_estimate(const Setting& setting) {
  LossyAllReduce call(setting);
  call.run();
  double mean = 0.0;
  for (Rank owner = 0; owner < kLossyRanks; ++owner)
    mean += call.report(owner).variance_estimate / kLossyRanks;
  return mean;
}

TEST(LossyAllReduceReport, VarianceIsInTheSquaredUnitOfTheElements) {
  for (const Estimator estimator : {Estimator::ratio, Estimator::horvitz_thompson}) {
    const Setting average{.estimator = estimator, .op = ReduceOp::avg};
    const double one = variance_estimate(average);
    EXPECT_GT(one, 0.0);
    Setting larger = average;
    larger.factor = 100.0f;
    EXPECT_NEAR(variance_estimate(larger) / one, 1e4, 1.0);
    Setting sum = average;
    sum.op = ReduceOp::sum;
    EXPECT_NEAR(variance_estimate(sum) / one, kLossyRanks * kLossyRanks, 1e-3);
  }
}

// Under a lossy spread ranks lack different parts, and no rank hears what others lack. So
// `complete` must tell of the rank's own result only.
TEST(LossyAllReduceReport, CompleteSpeaksOfItsOwnRank) {
  GroupOptions options{.size = kLossyRanks};
  options.faults.loss = 0.05;
  EngineGroup group(options);
  int mixed = 0;
  for (int call = 0; call < 20; ++call) {
    std::array<std::vector<float>, kLossyRanks> data;
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(8'000, static_cast<float>(rank + 1));
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(10s);
      spec.options.spread = Delivery::Kind::best_effort;
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    std::vector<Rank> complete;
    for (Rank rank = 0; rank < kLossyRanks; ++rank) {
      const CollectiveReport& report = requests[rank]->report;
      EXPECT_EQ(report.complete, report.elements_missing == 0);
      if (report.complete) complete.push_back(rank);
    }
    mixed += !complete.empty() && complete.size() < kLossyRanks;
    for (const Rank rank : complete) EXPECT_EQ(data[rank], data[complete.front()]);
  }
  EXPECT_GT(mixed, 5);
}

// The variance is measured for float32 only. For other types it must be NaN, and not 0, after
// losses.
TEST(LossyAllReduceReport, VarianceThatIsNotMeasuredIsNoNumber) {
  for (const double loss : {0.3, 0.0}) {
    EngineGroup group(GroupOptions{.size = 2, .faults = {.loss = loss}});
    std::array<std::vector<double>, 2> data;
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(20'000, 1.0);
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(10s);
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    for (const Request* request : requests) {
      EXPECT_FALSE(request->report.noise.measured);
      if (loss > 0.0) {
        EXPECT_TRUE(std::isnan(request->report.variance_estimate));
      } else {
        EXPECT_EQ(request->report.variance_estimate, 0.0);
      }
    }
  }
}

TEST(LossyAllReduceRepeat, TheSameSeedGivesTheSameBits) {
  LossyAllReduce first({.estimator = Estimator::symmetric_ratio, .seed = 5});
  LossyAllReduce second({.estimator = Estimator::symmetric_ratio, .seed = 5});
  LossyAllReduce other({.estimator = Estimator::symmetric_ratio, .seed = 6});
  first.run();
  second.run();
  other.run();
  EXPECT_EQ(first.data(0), second.data(0));
  EXPECT_NE(first.data(0), other.data(0));
}

// zero_fill makes the mean smaller by the lost share; estimators with realised rates do not. The
// packets of 400 operations are lost independently, so their scatter gives the standard error.
TEST(LossyAllReduceBias, RatesAreMadeUpForInTheMeanButByZeroFill) {
  constexpr std::size_t kControlCount = 12000;
  std::vector<double> truth;
  double scale = 0;
  for (std::size_t i = 0; i < kControlCount; ++i) {
    truth.push_back(value(0, i) + value(1, i) + value(2, i) + value(3, i));
    scale += truth[i] * truth[i];
  }
  for (const auto& [estimator, biased] : {std::pair{Estimator::zero_fill, true},
                                          {Estimator::symmetric_ratio, false},
                                          {Estimator::stratified, false},
                                          {Estimator::horvitz_thompson, false}}) {
    double sum = 0, squares = 0;
    constexpr int kRuns = 400;
    for (int run = 0; run < kRuns; ++run) {
      LossyAllReduce call(
          {.estimator = estimator, .count = kControlCount, .loss = 0.2, .seed = 1000u + run});
      call.run();
      const std::vector<float>& result = call.data(0);
      double error = 0;  // result projected on the true sum
      for (std::size_t i = 0; i < kControlCount; ++i) error += (result[i] - truth[i]) * truth[i];
      sum += error / scale;
      squares += (error / scale) * (error / scale);
    }
    const double mean = sum / kRuns;
    const double standard_error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
    if (biased) {
      EXPECT_LT(mean, -0.1) << to_string(estimator);
    } else {
      EXPECT_NEAR(mean, 0.0, 4 * standard_error) << to_string(estimator);
      EXPECT_LT(standard_error, 0.005) << to_string(estimator);
    }
  }
}

}  // namespace
}  // namespace leeway::collective
