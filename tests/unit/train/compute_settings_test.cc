#include "train/compute_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "train/settings.h"

namespace leeway::tools::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Kind = ComputeThreshold::Kind;

Result<ComputeSettings> compute_with(const std::function<void(ComputeArguments&)>& change,
                                     int batch = 8, int ranks = 4) {
  ComputeArguments arguments;
  change(arguments);
  return understand_compute(arguments, batch, ranks);
}

TEST(UnderstandCompute, WholeStepsAreTheDefault) {
  const auto compute = understand_compute(ComputeArguments{}, 7, 0);
  ASSERT_TRUE(compute.ok());
  EXPECT_EQ(compute->micro_batches, 1);
  EXPECT_EQ(compute->straggler.kind, StragglerModel::Kind::none);
  EXPECT_FALSE(compute->drops());
  EXPECT_FALSE(compute->baseline);
}

TEST(UnderstandCompute, WhatStragglesOrDropsHasMicroBatches) {
  const auto straggles = compute_with([](ComputeArguments& a) { a.straggler = "constant:1"; });
  ASSERT_TRUE(straggles.ok());
  EXPECT_EQ(straggles->micro_batches, kMicroBatchesDefault);
  EXPECT_FALSE(straggles->baseline);  // which would be the same run
  const auto drops = compute_with([](ComputeArguments& a) { a.threshold = "auto"; });
  ASSERT_TRUE(drops.ok());
  EXPECT_EQ(drops->micro_batches, kMicroBatchesDefault);
  EXPECT_EQ(drops->threshold.kind, Kind::automatic);
  EXPECT_EQ(drops->compensation, DropCompensation::extra_steps);
  EXPECT_EQ(drops->normalisation, Normalisation::realised_weight);
  EXPECT_TRUE(drops->baseline);
}

TEST(UnderstandCompute, ThresholdIsInSeconds) {
  const auto compute = compute_with([](ComputeArguments& a) {
    a.threshold = "0.05";
    a.micro_batches = 4;
    a.compensation = "requeue";
    a.normalisation = "maximum";
    a.baseline = false;
  });
  ASSERT_TRUE(compute.ok()) << compute.status().c_str();
  EXPECT_EQ(compute->threshold.kind, Kind::fixed);
  EXPECT_EQ(compute->threshold.value, 50ms);
  EXPECT_EQ(to_string(compute->threshold), "0.05");
  EXPECT_EQ(compute->micro_batches, 4);
  EXPECT_EQ(compute->compensation, DropCompensation::requeue);
  EXPECT_EQ(compute->normalisation, Normalisation::fixed_maximum);
  EXPECT_FALSE(compute->baseline);
}

struct ComputeRefusal {
  const char* name;
  std::function<void(ComputeArguments&)> change;
  const char* text;
};
class UnderstandComputeRefuses : public testing::TestWithParam<ComputeRefusal> {};
TEST_P(UnderstandComputeRefuses, WithOneClearLine) {
  const auto compute = compute_with(GetParam().change);
  ASSERT_FALSE(compute.ok());
  EXPECT_EQ(compute.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(compute.status().text()), HasSubstr(GetParam().text));
  EXPECT_EQ(compute.status().text().find('\n'), std::string_view::npos);
}
INSTANTIATE_TEST_SUITE_P(
    Arguments, UnderstandComputeRefuses,
    testing::Values(
        ComputeRefusal{"UnknownStraggler", [](ComputeArguments& a) { a.straggler = "snail"; },
                       "--straggler 'snail'"},
        ComputeRefusal{"NegativeThreshold", [](ComputeArguments& a) { a.threshold = "-1"; },
                       "--compute-threshold '-1'"},
        ComputeRefusal{"NoTime", [](ComputeArguments& a) { a.threshold = "0"; }, "seconds above 0"},
        ComputeRefusal{"ThresholdNotANumber", [](ComputeArguments& a) { a.threshold = "nan"; },
                       "--compute-threshold 'nan'"},
        ComputeRefusal{"ThresholdWithUnit", [](ComputeArguments& a) { a.threshold = "5ms"; },
                       "none, auto, or seconds"},
        ComputeRefusal{"OneMicroBatchToDrop",
                       [](ComputeArguments& a) {
                         a.threshold = "auto";
                         a.micro_batches = 1;
                       },
                       "take 2 or more"},
        ComputeRefusal{"NegativeMicroBatches", [](ComputeArguments& a) { a.micro_batches = -1; },
                       "--micro-batches -1"},
        ComputeRefusal{"BatchThatCannotBeCut", [](ComputeArguments& a) { a.micro_batches = 3; },
                       "--batch 8 cannot be cut into --micro-batches 3"},
        ComputeRefusal{"UnknownCompensation",
                       [](ComputeArguments& a) {
                         a.threshold = "auto";
                         a.compensation = "luck";
                       },
                       "there are none, extra_steps, requeue"},
        ComputeRefusal{"UnknownNormalisation",
                       [](ComputeArguments& a) {
                         a.threshold = "auto";
                         a.normalisation = "median";
                       },
                       "there are realised, maximum"},
        ComputeRefusal{"CompensationForNothing",
                       [](ComputeArguments& a) { a.compensation = "requeue"; },
                       "--compensation is about dropped work"},
        ComputeRefusal{"NormalisationOfNothing",
                       [](ComputeArguments& a) { a.normalisation = "maximum"; },
                       "--normalisation is about dropped work"},
        ComputeRefusal{"SlowRankThatIsNotThere",
                       [](ComputeArguments& a) { a.straggler = "constant:1,slow:4:2"; },
                       "slow rank 4 is not among ranks 0 .. 3"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Understand, TakesTheRanksOfALauncher) {
  Arguments arguments;
  arguments.compute.straggler = "constant:1,slow:2:2";
  Options environment;
  environment.world_size = 2;
  EXPECT_FALSE(understand(arguments, environment).ok());
  environment.world_size = 3;
  EXPECT_TRUE(understand(arguments, environment).ok());
}

// Tests with which runs a run with a threshold is compared.
class ComparedRuns : public testing::Test {
 protected:
  static Settings settings() {
    Arguments arguments;
    arguments.loss = 0.2;
    arguments.compute.straggler = "lognormal:5";
    arguments.compute.threshold = "auto";
    arguments.compute.micro_batches = 4;
    return *understand(arguments, Options{});
  }
};

TEST_F(ComparedRuns, TwinIsNeitherSlowNorDropsAnything) {
  const Settings twin = loss_free_twin(settings());
  EXPECT_EQ(twin.compute.straggler.kind, StragglerModel::Kind::none);
  EXPECT_FALSE(twin.compute.drops());
  EXPECT_EQ(twin.compute.micro_batches, 4);
}

TEST_F(ComparedRuns, BaselineDiffersByItsThresholdAlone) {
  const Settings run = settings();
  const Settings whole = without_threshold(run);
  EXPECT_FALSE(whole.compute.drops());
  EXPECT_EQ(whole.compute.straggler, run.compute.straggler);
  EXPECT_EQ(whole.compute.micro_batches, 4);
  EXPECT_EQ(whole.communicator.faults.loss, 0.2);
  EXPECT_NE(whole.communicator.communicator_name, run.communicator.communicator_name);
}

}  // namespace
}  // namespace leeway::tools::train
