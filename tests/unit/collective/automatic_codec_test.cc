// With Codec::automatic, all ranks must agree on the codec of every call, and the codec must follow
// the statistics of the gradients.
#include "collective/automatic_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kAutomaticRanks = 3;
constexpr std::size_t kAutomaticCount = 3000;

// A normal draw (Box-Muller). The part `shared` of its variance is common to all ranks.
float gradient(Rank rank, int call, std::size_t i, double shared) {
  const auto normal = [&](std::uint32_t stream) {
    const double u = to_unit(
        keyed_hash(5, static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(call), stream));
    const double v = to_unit(
        keyed_hash(6, static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(call), stream));
    return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v);
  };
  return static_cast<float>(std::sqrt(shared) * normal(100) + std::sqrt(1 - shared) * normal(rank));
}

class AutomaticJob {
 public:
  explicit AutomaticJob(double shared, const GroupOptions& options = {.size = kAutomaticRanks})
      : shared_(shared), group_(options) {}

  // From now on `rank` has weight 0. Its buffer holds a gradient whose every second element is
  // multiplied by `left_over`.
  void idle(Rank rank, float left_over) {
    idle_ = rank;
    left_over_ = left_over;
  }

  // Submits further calls on all ranks without waiting for them.
  void submit(int calls) {
    for (int i = 0; i < calls; ++i) {
      const int call = static_cast<int>(calls_.size());
      calls_.push_back(group_.submit_all([&](Rank rank) {
        auto& data = data_.emplace_back(std::make_unique<std::vector<float>>(kAutomaticCount));
        for (std::size_t e = 0; e < kAutomaticCount; ++e) {
          (*data)[e] =
              gradient(rank, call, e, shared_) * (rank == idle_ && e % 2 == 0 ? left_over_ : 1.0f);
        }
        OperationSpec spec{.kind = OperationKind::all_reduce,
                           .input = std::span(*data),
                           .output = std::span(*data)};
        spec.options.op = ReduceOp::avg;
        spec.options.codec = Codec::automatic;
        spec.options.weight = rank == idle_ ? 0.0 : 1.0;
        return spec;
      }));
    }
  }
  void finish() {
    for (const auto& requests : calls_) ASSERT_TRUE(group_.run(requests));
    for (const auto& requests : calls_) {
      for (const Request* request : requests)
        ASSERT_TRUE(request->status.ok()) << request->status.c_str();
    }
  }
  // Returns the codec of the call's payload, or native if ranks report different ones.
  Codec used(std::size_t call) const {
    for (const Request* request : calls_[call]) {
      if (request->report.codec != calls_[call][0]->report.codec) return Codec::native;
    }
    return calls_[call][0]->report.codec.codec;
  }
  std::size_t calls() const { return calls_.size(); }

 private:
  double shared_;
  Rank idle_ = kNoRank;
  float left_over_ = 1.0f;
  EngineGroup group_;
  std::vector<std::vector<Request*>> calls_;
  std::vector<std::unique_ptr<std::vector<float>>> data_;
};

TEST(AutomaticCodecEngine, StartsWide) {
  AutomaticJob job(1.0);
  job.submit(2 * AutomaticCodec::kPeriod);
  job.finish();
  for (std::size_t call = 0; call < job.calls(); ++call)
    EXPECT_EQ(job.used(call), Codec::fp8_e4m3_block) << call;
}

TEST(AutomaticCodecEngine, TakesFewBitsWhereTheGradientStandsOut) {
  AutomaticJob job(1.0);
  for (std::uint64_t i = 0; i < 3 * AutomaticCodec::kPeriod; ++i) {
    job.submit(1);
    job.finish();
  }
  EXPECT_EQ(job.used(2 * AutomaticCodec::kPeriod - 1), Codec::fp8_e4m3_block);
  EXPECT_EQ(job.used(2 * AutomaticCodec::kPeriod), Codec::nvfp4);
  EXPECT_EQ(job.used(job.calls() - 1), Codec::nvfp4);
}

TEST(AutomaticCodecEngine, ARankWithoutUnitsHasNoSay) {
  const auto chosen = [](double shared, float left_over) {
    AutomaticJob job(shared);
    job.idle(1, left_over);
    job.submit(3 * AutomaticCodec::kPeriod);
    job.finish();
    return job.used(job.calls() - 1);
  };
  for (const double shared : {0.002, 0.02}) {
    EXPECT_NE(chosen(shared, 1.0f), Codec::native) << "ranks disagree";
    EXPECT_EQ(chosen(shared, 1.0f), chosen(shared, 1e30f)) << shared;
  }
}

TEST(AutomaticCodecEngine, TakesMoreBitsWhereTheGradientIsSmallAgainstItsNoise) {
  AutomaticJob job(0.002);
  job.submit(3 * AutomaticCodec::kPeriod);
  job.finish();
  const Codec last = job.used(job.calls() - 1);
  EXPECT_NE(last, Codec::native) << "ranks disagree";
  EXPECT_NE(last, Codec::nvfp4);
}

TEST(AutomaticCodecEngine, AgreesOverALossyNetworkWithManyCallsInFlight) {
  GroupOptions options{.size = kAutomaticRanks};
  options.faults.loss = 0.2;
  options.faults.reorder = 0.1;
  AutomaticJob job(0.5, options);
  job.submit(100);  // far more than may be open at once
  job.finish();
  for (std::size_t call = 0; call < job.calls(); ++call)
    EXPECT_NE(job.used(call), Codec::native) << call;
}

TEST(AutomaticCodec, ExchangesOncePerPeriodAndNotAtTheStart) {
  AutomaticCodec automatic;
  for (std::uint64_t call = 0; call < 3 * AutomaticCodec::kPeriod; ++call) {
    const std::uint64_t number = automatic.next_number();
    EXPECT_EQ(number, call);
    EXPECT_EQ(automatic.exchange_due(number),
              call == AutomaticCodec::kPeriod || call == 2 * AutomaticCodec::kPeriod)
        << call;
  }
}

TEST(AutomaticCodec, WaitsForAnExchangeOnlyOnePeriodLater) {
  constexpr std::uint64_t kPeriod = AutomaticCodec::kPeriod;
  AutomaticCodec automatic;
  Request& exchange = automatic.exchange(kPeriod, {});
  EXPECT_TRUE(automatic.ready(kPeriod));
  EXPECT_TRUE(automatic.ready(2 * kPeriod - 1));
  EXPECT_FALSE(automatic.ready(2 * kPeriod));
  exchange.done = true;
  EXPECT_TRUE(automatic.ready(2 * kPeriod));
}

TEST(AutomaticCodec, KeepsItsChoiceWhenNothingWasMeasured) {
  AutomaticCodec automatic;
  Request& exchange = automatic.exchange(AutomaticCodec::kPeriod, {});
  automatic.on_start(exchange);
  exchange.done = true;
  EXPECT_EQ(automatic.choose(2 * AutomaticCodec::kPeriod), CodecOptions(Codec::fp8_e4m3_block));
}

TEST(AutomaticCodec, KeepsItsChoiceWhenAnExchangeFailed) {
  AutomaticCodec automatic;
  Request& exchange = automatic.exchange(AutomaticCodec::kPeriod, {});
  exchange.status = Status::error(StatusCode::kDeadlineExceeded, "rank 1 is silent");
  exchange.done = true;
  EXPECT_EQ(automatic.choose(2 * AutomaticCodec::kPeriod), CodecOptions(Codec::fp8_e4m3_block));
}

}  // namespace
}  // namespace leeway::collective
