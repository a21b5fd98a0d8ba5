#include "train/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace leeway::tools::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Result<Settings> understand_with(const std::function<void(Arguments&)>& change,
                                 const Options& environment = {}) {
  Arguments arguments;
  change(arguments);
  return understand(arguments, environment);
}

TEST(Understand, DefaultsAreTheLossySchemeAtTenPercent) {
  const auto settings = understand(Arguments{}, Options{});
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  EXPECT_EQ(settings->mode, Mode::replica);
  EXPECT_EQ(settings->communicator.faults.loss, 0.10);
  EXPECT_EQ(settings->communicator.faults.burst, 1.0);
  EXPECT_EQ(settings->communicator.datagram_bytes, 1472u);
  EXPECT_EQ(settings->reduce.op, ReduceOp::avg);
  EXPECT_EQ(settings->reduce.delivery.kind, Delivery::Kind::best_effort);
  EXPECT_EQ(settings->reduce.estimator, Estimator::ratio);
  EXPECT_EQ(settings->replica.delivery, Delivery::Kind::best_effort);
  EXPECT_EQ(settings->replica.age_max, 8u);
  EXPECT_TRUE(settings->twin);
  EXPECT_EQ(settings->width % settings->heads, 0);
}

TEST(Understand, SpreadOfDdpIsExactSoThatReplicasStayEqual) {
  const auto settings = understand_with([](Arguments& a) { a.mode = "ddp"; });
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->mode, Mode::ddp);
  EXPECT_EQ(settings->reduce.spread, Delivery::Kind::exact);
}

TEST(Understand, DeliveryReachesBothHalves) {
  const auto bounded_run = understand_with([](Arguments& a) {
    a.delivery = "bounded:0.05";
    a.deadline_ms = 250;
  });
  ASSERT_TRUE(bounded_run.ok()) << bounded_run.status().c_str();
  EXPECT_EQ(bounded_run->reduce.delivery.kind, Delivery::Kind::bounded);
  EXPECT_EQ(bounded_run->reduce.delivery.loss_max, 0.05);
  EXPECT_EQ(bounded_run->reduce.delivery.deadline, 250ms);
  EXPECT_EQ(bounded_run->replica.delivery, Delivery::Kind::best_effort);
  EXPECT_EQ(bounded_run->replica.deadline, 250ms);

  const auto exact_run = understand_with([](Arguments& a) { a.delivery = "exact"; });
  ASSERT_TRUE(exact_run.ok());
  EXPECT_EQ(exact_run->reduce.delivery.kind, Delivery::Kind::exact);
  EXPECT_EQ(exact_run->replica.delivery, Delivery::Kind::exact);
}

TEST(Understand, LossOfTheEnvironmentStandsUnlessGiven) {
  Options environment;
  environment.faults.loss = 0.3;
  environment.faults.burst = 4;
  const auto kept = understand_with([](Arguments&) {}, environment);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->communicator.faults.loss, 0.3);
  EXPECT_EQ(kept->communicator.faults.burst, 4.0);

  const auto given = understand_with([](Arguments& a) { a.loss = 0.0; }, environment);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->communicator.faults.loss, 0.0);
}

TEST(Understand, OtherFaultsOfTheEnvironmentMeanNoDefaultLoss) {
  Options environment;
  environment.faults.reorder = 0.1;
  const auto settings = understand_with([](Arguments&) {}, environment);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->communicator.faults.loss, 0.0);
}

TEST(Understand, GradientsAndParametersHaveCodecsOfTheirOwn) {
  const auto settings = understand_with([](Arguments& a) {
    a.codec = "nvfp4:nearest";
    a.parameter_codec = "bf16";
    a.error_feedback = true;
  });
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  EXPECT_EQ(leeway::to_string(settings->reduce.codec), "nvfp4:nearest");
  EXPECT_FALSE(settings->reduce.spread_codec.has_value());
  EXPECT_EQ(settings->replica.codec.codec, Codec::bf16);
  EXPECT_TRUE(settings->error_feedback);
}

TEST(Understand, ParametersTravelAsTheyAreUnlessToldOtherwise) {
  const auto settings = understand_with([](Arguments& a) { a.codec = "nvfp4"; });
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->replica.codec.codec, Codec::native);
  EXPECT_FALSE(settings->error_feedback);
}

TEST(Understand, SpreadHalfOfDdpMayHaveACodecOfItsOwn) {
  const auto settings = understand_with([](Arguments& a) {
    a.mode = "ddp";
    a.codec = "nvfp4";
    a.spread_codec = "bf16";
  });
  ASSERT_TRUE(settings.ok()) << settings.status().c_str();
  ASSERT_TRUE(settings->reduce.spread_codec.has_value());
  EXPECT_EQ(settings->reduce.spread_codec->codec, Codec::bf16);
}

struct Refusal {
  const char* name;
  std::function<void(Arguments&)> change;
  const char* text;
};

class UnderstandRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(UnderstandRefuses, WithOneClearLine) {
  const auto settings = understand_with(GetParam().change);
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(settings.status().text()), HasSubstr(GetParam().text));
  EXPECT_EQ(settings.status().text().find('\n'), std::string_view::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, UnderstandRefuses,
    testing::Values(
        Refusal{"NegativeRanks", [](Arguments& a) { a.ranks = -1; }, "--ranks -1"},
        Refusal{"UnknownMode", [](Arguments& a) { a.mode = "fsdp"; }, "unknown mode 'fsdp'"},
        Refusal{"CertainLoss", [](Arguments& a) { a.loss = 1.0; }, "--loss"},
        Refusal{"NegativeLoss", [](Arguments& a) { a.loss = -0.1; }, "--loss"},
        Refusal{"LossNotANumber",
                [](Arguments& a) { a.loss = std::numeric_limits<double>::quiet_NaN(); }, "--loss"},
        Refusal{"BurstBelowOne", [](Arguments& a) { a.burst = 0.5; }, "--burst"},
        Refusal{"UnknownCodec", [](Arguments& a) { a.codec = "int3"; }, "int3"},
        Refusal{"UnknownSettingOfACodec", [](Arguments& a) { a.codec = "nvfp4:odd"; }, "odd"},
        Refusal{"UnknownParameterCodec", [](Arguments& a) { a.parameter_codec = "int3"; }, "int3"},
        Refusal{"UnknownSpreadCodec",
                [](Arguments& a) {
                  a.mode = "ddp";
                  a.spread_codec = "int3";
                },
                "int3"},
        Refusal{"AutomaticParameters", [](Arguments& a) { a.parameter_codec = "automatic"; },
                "--parameter-codec"},
        Refusal{"ParameterCodecInDdpMode",
                [](Arguments& a) {
                  a.mode = "ddp";
                  a.parameter_codec = "bf16";
                },
                "--parameter-codec is of replica mode"},
        Refusal{"SpreadCodecInReplicaMode", [](Arguments& a) { a.spread_codec = "bf16"; },
                "--spread-codec is of ddp mode"},
        Refusal{"FeedbackOfNoError", [](Arguments& a) { a.error_feedback = true; },
                "--error-feedback"},
        Refusal{"UnknownEstimator", [](Arguments& a) { a.estimator = "hope"; }, "hope"},
        Refusal{"UnknownDelivery", [](Arguments& a) { a.delivery = "soon"; },
                "unknown delivery 'soon'"},
        Refusal{"BoundedWithoutBound", [](Arguments& a) { a.delivery = "bounded:"; },
                "bounded:LOSS"},
        Refusal{"BoundedWithTrailingText", [](Arguments& a) { a.delivery = "bounded:0.1x"; },
                "bounded:LOSS"},
        Refusal{"BoundedAboveOne", [](Arguments& a) { a.delivery = "bounded:1.5"; },
                "bounded:LOSS"},
        Refusal{"NoDeadline", [](Arguments& a) { a.deadline_ms = 0; }, "--deadline-ms"},
        Refusal{"NoSteps", [](Arguments& a) { a.steps = 0; }, "--steps 0"},
        Refusal{"NoRepeat", [](Arguments& a) { a.repeat = 0; }, "--repeat 0"},
        Refusal{"NoBatch", [](Arguments& a) { a.batch = 0; }, "--batch 0"},
        Refusal{"ShortContext", [](Arguments& a) { a.context = 1; }, "--context 1"},
        Refusal{"NoLayers", [](Arguments& a) { a.layers = 0; }, "--layers 0"},
        Refusal{"OddWidth", [](Arguments& a) { a.width = 40; },
                "--width 40 is not a multiple of 16"},
        Refusal{"NoLearning", [](Arguments& a) { a.learning_rate = 0; }, "--learning-rate"},
        Refusal{"AgeBeyondAByte", [](Arguments& a) { a.age_max = 256; }, "--age-max 256"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(LossFreeTwin, HasNoFaults) {
  const auto settings = understand_with([](Arguments& a) { a.loss = 0.2; });
  ASSERT_TRUE(settings.ok());
  const Options lossy = communicator_options(*settings, 5);
  const Options twin = communicator_options(loss_free_twin(*settings), 5);
  EXPECT_EQ(lossy.faults.loss, 0.2);
  EXPECT_FALSE(twin.faults.any());
  EXPECT_EQ(lossy.faults.seed, 5u);
  EXPECT_EQ(lossy.seed, twin.seed);
  EXPECT_EQ(lossy.datagram_bytes, twin.datagram_bytes);
  EXPECT_NE(lossy.communicator_name, twin.communicator_name);
}

TEST(LossFreeTwin, RidesWhatTheLossyRunRides) {
  auto settings = understand_with([](Arguments& a) { a.loss = 0.2; });
  ASSERT_TRUE(settings.ok());
  const auto twin = [&](TransportKind kind) {
    settings->communicator.transport = kind;
    return loss_free_twin(*settings).communicator.transport;
  };
  EXPECT_EQ(twin(TransportKind::automatic), TransportKind::udp);  // if faults are injected
  EXPECT_EQ(twin(TransportKind::ucx), TransportKind::ucx);
  settings->communicator.faults = FaultOptions{};
  EXPECT_EQ(twin(TransportKind::automatic), TransportKind::automatic);
}

TEST(LossFreeTwin, IsExactWhereTheNetworkLoses) {
  const auto injected = understand_with([](Arguments& a) { a.loss = 0.2; });
  ASSERT_TRUE(injected.ok());
  EXPECT_EQ(loss_free_twin(*injected).reduce.delivery.kind, Delivery::Kind::best_effort);
  const auto network = understand_with([](Arguments& a) {
    a.loss = 0;
    a.deadline_ms = 700;
  });
  ASSERT_TRUE(network.ok());
  const Settings twin = loss_free_twin(*network);
  EXPECT_EQ(twin.reduce.delivery.kind, Delivery::Kind::exact);
  EXPECT_EQ(twin.reduce.delivery.deadline, std::chrono::milliseconds(700));
  EXPECT_EQ(twin.reduce.spread, Delivery::Kind::exact);
  EXPECT_EQ(twin.replica.delivery, Delivery::Kind::exact);
}

TEST(LossFreeTwin, SendsEveryFloatAsItIs) {
  const auto replica = understand_with([](Arguments& a) {
    a.codec = "nvfp4";
    a.parameter_codec = "bf16";
    a.error_feedback = true;
  });
  ASSERT_TRUE(replica.ok());
  const Settings twin = loss_free_twin(*replica);
  EXPECT_EQ(twin.reduce.codec, Codec::native);
  EXPECT_EQ(twin.replica.codec, Codec::native);
  EXPECT_FALSE(twin.error_feedback);

  const auto ddp = understand_with([](Arguments& a) {
    a.mode = "ddp";
    a.spread_codec = "fp8_e4m3";
  });
  ASSERT_TRUE(ddp.ok());
  EXPECT_FALSE(loss_free_twin(*ddp).reduce.spread_codec.has_value());
}

TEST(LossFreeTwin, DoesTheSameJob) {
  const auto settings = understand_with([](Arguments& a) { a.steps = 77; });
  ASSERT_TRUE(settings.ok());
  const Settings twin = loss_free_twin(*settings);
  EXPECT_EQ(twin.steps, 77u);
  EXPECT_EQ(twin.reduce.estimator, settings->reduce.estimator);
  EXPECT_EQ(twin.reduce.delivery.kind, settings->reduce.delivery.kind);
  EXPECT_EQ(twin.replica.age_max, settings->replica.age_max);
}

TEST(CommunicatorOptions, EachSeedLosesOtherPackets) {
  const auto settings = understand(Arguments{}, Options{});
  ASSERT_TRUE(settings.ok());
  EXPECT_NE(communicator_options(*settings, 1).faults.seed,
            communicator_options(*settings, 2).faults.seed);
}

}  // namespace
}  // namespace leeway::tools::train
