// Wrong arguments are an error before anything is sent; the text says which argument, and what
// would be right.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collective/operation_spec.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kValidatingRanks = 4;

class Validate : public ::testing::Test {
 protected:
  OperationSpec spec(OperationKind kind, std::size_t in, std::size_t out, Rank peer = kNoRank) {
    OperationSpec spec{.kind = kind, .peer = peer};
    spec.input = ConstTensorView(buffer_.data(), in, DataType::f32);
    spec.output = TensorView(buffer_.data(), out, DataType::f32);
    return spec;
  }
  OperationSpec all_reduce() { return spec(OperationKind::all_reduce, 100, 100); }

  void expect_refused(const OperationSpec& spec, StatusCode code,
                      std::initializer_list<const char*> words) {
    const Status status = validate(spec, 0, kValidatingRanks);
    EXPECT_EQ(status.code(), code) << status.text();
    for (const char* word : words)
      EXPECT_NE(status.text().find(word), std::string_view::npos) << status.text();
    EXPECT_NE(status.text().find(to_string(spec.kind)), std::string_view::npos) << status.text();

    EngineGroup group(GroupOptions{.size = kValidatingRanks});
    const Request& request = group.submit(0, spec);
    EXPECT_TRUE(request.done);
    EXPECT_EQ(request.status.code(), code);
    EXPECT_FALSE(group.run_until([] { return false; }, 10ms));
    EXPECT_EQ(group.engine(0).endpoint().counters().data_sent, 0u);
  }
  void expect_invalid(const OperationSpec& spec, std::initializer_list<const char*> words) {
    expect_refused(spec, StatusCode::kInvalidArgument, words);
  }

  std::vector<float> buffer_ = std::vector<float>(1000);
};

TEST_F(Validate, SizesThatDoNotFitTheOperation) {
  expect_invalid(spec(OperationKind::all_reduce, 100, 99), {"differ in size", "100", "99"});
  expect_invalid(spec(OperationKind::reduce_scatter, 100, 26), {"size x output", "100", "26"});
  expect_invalid(spec(OperationKind::all_gather, 25, 101), {"size x input", "25", "101"});
  expect_invalid(spec(OperationKind::gather, 25, 99, 0), {"size x input"});
  expect_invalid(spec(OperationKind::scatter, 99, 25, 0), {"size x output"});
  expect_invalid(spec(OperationKind::all_to_all, 99, 99), {"equal blocks"});
  expect_invalid(spec(OperationKind::all_to_all, 100, 104), {"equal blocks"});
  expect_invalid(spec(OperationKind::reduce, 100, 99, 0), {"differ in size"});
}

TEST_F(Validate, ArgumentsThatOnlyTheRootUsesAreNotLookedAtElsewhere) {
  EXPECT_TRUE(validate(spec(OperationKind::reduce, 100, 0, 1), 0, kValidatingRanks).ok());
  EXPECT_TRUE(validate(spec(OperationKind::gather, 25, 0, 1), 0, kValidatingRanks).ok());
  EXPECT_TRUE(validate(spec(OperationKind::scatter, 0, 25, 1), 0, kValidatingRanks).ok());
}

TEST_F(Validate, EnumeratorsThatDoNotExist) {
  const auto changed = [&](auto&& change) {
    OperationSpec one = all_reduce();
    change(one);
    return one;
  };
  for (const int beyond : {0, 1, 77}) {
    expect_invalid(changed([&](OperationSpec& one) {
                     one.input.dtype = static_cast<DataType>(kDataTypeCount + beyond);
                   }),
                   {"data type"});
    expect_invalid(changed([&](OperationSpec& one) {
                     one.options.op = static_cast<ReduceOp>(kReduceOpCount + beyond);
                   }),
                   {"op"});
    expect_invalid(changed([&](OperationSpec& one) {
                     one.options.estimator = static_cast<Estimator>(kEstimatorCount + beyond);
                   }),
                   {"estimator"});
    expect_invalid(changed([&](OperationSpec& one) {
                     one.options.delivery.kind =
                         static_cast<Delivery::Kind>(Delivery::kKinds + beyond);
                   }),
                   {"delivery"});
    OperationSpec exchange{.kind = OperationKind::exchange};
    exchange.messages = std::make_shared<std::vector<leeway::Message>>(
        1, leeway::Message{
               .kind = static_cast<leeway::Message::Kind>(leeway::Message::kKinds + beyond),
               .input = all_reduce().input,
               .output = all_reduce().output,
               .peer = 1,
               .tag = 0});
    expect_invalid(exchange, {"kind of message"});
  }
  EXPECT_EQ(to_string(static_cast<Estimator>(kEstimatorCount)), "unknown");
}

TEST_F(Validate, RanksThatDoNotExist) {
  for (const OperationKind kind :
       {OperationKind::broadcast, OperationKind::reduce, OperationKind::gather,
        OperationKind::scatter, OperationKind::send, OperationKind::recv}) {
    expect_invalid(spec(kind, 100, 100, 4), {"rank 4 does not exist", "0 .. 3"});
    expect_invalid(spec(kind, 100, 100), {"does not exist"});
  }
  expect_invalid(spec(OperationKind::send, 100, 100, 0), {"itself"});
}

TEST_F(Validate, NullBuffersAndMixedTypes) {
  OperationSpec null_input = all_reduce();
  null_input.input.data = nullptr;
  expect_invalid(null_input, {"input is null"});
  OperationSpec null_output = all_reduce();
  null_output.output.data = nullptr;
  expect_invalid(null_output, {"output is null"});
  OperationSpec mixed = all_reduce();
  mixed.output.dtype = DataType::i32;
  expect_invalid(mixed, {"differ in type"});
  OperationSpec empty = spec(OperationKind::all_reduce, 0, 0);
  empty.input.data = nullptr;
  empty.output.data = nullptr;
  EXPECT_TRUE(validate(empty, 0, kValidatingRanks).ok()) << "nothing needs no memory";
}

TEST_F(Validate, DeadlinesAndBoundsOutsideTheirRange) {
  OperationSpec s = all_reduce();
  s.options.delivery = exact(0ms);
  expect_invalid(s, {"deadline", "positive"});
  for (const double bound : {-0.1, 1.1, std::nan("")}) {
    s.options.delivery = bounded(bound, 1s);
    expect_invalid(s, {"loss_max", "0 .. 1"});
  }
}

TEST_F(Validate, Weights) {
  // Weights outside float32's range would arrive as 0, or peers would refuse them. Near the range's
  // ends, reciprocals of weights lie outside.
  for (const double weight :
       {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e300, 1e-300, 1e38, 1e-42}) {
    OperationSpec s = all_reduce();
    s.options.op = ReduceOp::avg;
    s.options.weight = weight;
    expect_invalid(s, {"weight", "0 or", "2^64"});
  }
  std::vector<double> by_owner = {1.0, 1e-300, 1.0, 1.0};
  OperationSpec owners = all_reduce();
  owners.options.op = ReduceOp::avg;
  owners.options.owner_weights = std::span(by_owner).first(3);
  expect_invalid(owners, {"owner_weights", "each rank"});
  owners.options.owner_weights = std::span(by_owner);
  expect_invalid(owners, {"owner_weights", "confirm_use"});
  owners.options.confirm_use = true;
  owners.options.owner_weights = by_owner;
  expect_invalid(owners, {"owner_weights", "2^64"});
  by_owner[1] = 1.0;
  owners.options.op = ReduceOp::sum;
  expect_invalid(owners, {"weight", "avg"});
  OperationSpec sum = all_reduce();
  sum.options.weight = 2.0;
  expect_invalid(sum, {"weight", "avg"});
  OperationSpec half = all_reduce();
  half.options.op = ReduceOp::avg;
  half.options.weight = 2.0;
  half.input.dtype = half.output.dtype = DataType::f16;
  EXPECT_TRUE(validate(half, 0, kValidatingRanks).ok());
  half.input.dtype = half.output.dtype = DataType::f64;
  expect_invalid(half, {"weights", "float32"});
}

TEST_F(Validate, ReductionsThatATypeDoesNotHave) {
  OperationSpec s = all_reduce();
  for (const ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
    s.options.op = op;
    s.input.dtype = s.output.dtype = DataType::bf16;
    expect_refused(s, StatusCode::kUnsupported, {to_string(op).data(), "bfloat16"});
    s.input.dtype = s.output.dtype = DataType::boolean;
    EXPECT_TRUE(validate(s, 0, kValidatingRanks).ok());
  }
  for (const ReduceOp op : {ReduceOp::avg, ReduceOp::premul_sum}) {
    s.options.op = op;
    expect_refused(s, StatusCode::kUnsupported, {to_string(op).data(), "bool"});
  }
}

TEST_F(Validate, FactorsThatTheTypeDoesNotHaveOrNobodyAskedFor) {
  OperationSpec s = all_reduce();
  s.options.factor = 0.5;
  expect_invalid(s, {"factor", "premul_sum"});
  s.options.op = ReduceOp::premul_sum;
  EXPECT_TRUE(validate(s, 0, kValidatingRanks).ok());
  s.options.weight = 2.0;
  expect_invalid(s, {"weight", "avg"});
  s.options.weight = 1.0;
  s.input.dtype = s.output.dtype = DataType::i32;
  expect_invalid(s, {"factor", "int32"});
  s.options.factor = -1;
  EXPECT_TRUE(validate(s, 0, kValidatingRanks).ok());
  s.input.dtype = s.output.dtype = DataType::u64;
  expect_invalid(s, {"factor", "uint64"});
  OperationSpec moves = spec(OperationKind::broadcast, 100, 100, 0);
  moves.options.factor = 2;
  expect_invalid(moves, {"factor", "reduction"});
}

TEST_F(Validate, CodecsNeedFloatsAndSums) {
  OperationSpec ints = all_reduce();
  ints.options.codec = Codec::fp16;
  ints.input.dtype = ints.output.dtype = DataType::i32;
  expect_invalid(ints, {"native", "float32"});
  ints.input.dtype = ints.output.dtype = DataType::bf16;
  EXPECT_TRUE(validate(ints, 0, kValidatingRanks).ok());
  OperationSpec maximum = all_reduce();
  maximum.options.codec = Codec::bf16;
  maximum.options.op = ReduceOp::max;
  expect_invalid(maximum, {"sum or avg"});
}

TEST_F(Validate, CodecSettingsThatContradictEachOther) {
  OperationSpec s = all_reduce();
  s.options.codec = Codec::nvfp4;
  s.options.codec.draws = 2;
  expect_invalid(s, {"nvfp4", "draws"});
  s = all_reduce();
  s.options.spread_codec = Codec::sparse;
  s.options.spread_codec->kept = 9;
  expect_invalid(s, {"sparse", "kept"});
}

TEST_F(Validate, AutomaticCodecNeedsAReduction) {
  OperationSpec s = all_reduce();
  s.options.codec = Codec::automatic;
  EXPECT_TRUE(validate(s, 0, kValidatingRanks).ok());
  s.kind = OperationKind::broadcast;
  s.peer = 0;
  expect_invalid(s, {"automatic", "reduction"});
}

TEST_F(Validate, ResidualOfAnotherSizeOrWithoutAReduction) {
  std::vector<float> residual(99);
  OperationSpec s = all_reduce();
  s.options.residual = residual;
  expect_invalid(s, {"residual", "size"});
  s.kind = OperationKind::broadcast;
  s.peer = 0;
  expect_invalid(s, {"residual", "reduction"});
}

TEST_F(Validate, ControlVariateOfAnotherSize) {
  OperationSpec s = all_reduce();
  s.options.delivery = best_effort(1s);
  s.options.estimator = Estimator::augmented;
  s.options.control_variate = std::span<const float>(buffer_).first(99);
  expect_invalid(s, {"control_variate"});
}

// The control variate is added to the result in float32, which would write past the end of another
// type.
TEST_F(Validate, ControlVariateOfAnotherTypeThanTheTensor) {
  for (const DataType dtype : {DataType::bf16, DataType::f64}) {
    OperationSpec s = spec(OperationKind::all_reduce, 100, 100);
    s.input.dtype = s.output.dtype = dtype;
    s.options.delivery = best_effort(1s);
    s.options.estimator = Estimator::augmented;
    s.options.control_variate = std::span<const float>(buffer_).first(100);
    expect_refused(s, StatusCode::kUnsupported, {"control_variate", "float32"});
  }
}

TEST_F(Validate, WhatOnlyFloat32Has) {
  std::vector<float> residual(100);
  for (const DataType dtype : {DataType::f16, DataType::bf16}) {
    OperationSpec s = all_reduce();
    s.input.dtype = s.output.dtype = dtype;
    s.options.codec = Codec::automatic;
    expect_refused(s, StatusCode::kUnsupported, {"automatic", "float32"});
    s.options.codec = Codec::nvfp4;
    s.options.residual = residual;
    expect_refused(s, StatusCode::kUnsupported, {"residual", "float32"});
  }
}

TEST_F(Validate, LossyClassesWhereTheyMeanNothing) {
  for (const OperationKind kind :
       {OperationKind::all_gather, OperationKind::broadcast, OperationKind::gather,
        OperationKind::scatter, OperationKind::all_to_all, OperationKind::send, OperationKind::recv,
        OperationKind::barrier}) {
    const bool gathers = kind == OperationKind::all_gather || kind == OperationKind::gather;
    const bool scatters = kind == OperationKind::scatter;
    OperationSpec s = spec(kind, gathers ? 25 : 100, scatters ? 25 : 100,
                           kind == OperationKind::send || kind == OperationKind::recv ? 1 : 0);
    for (const Delivery delivery : {best_effort(1s), bounded(0.1, 1s)}) {
      s.options.delivery = delivery;
      expect_refused(s, StatusCode::kUnsupported, {"one source", "use exact"});
    }
  }
}

TEST_F(Validate, LossyReductionsOfIntegersOrProducts) {
  OperationSpec s = all_reduce();
  s.options.delivery = best_effort(1s);
  for (const ReduceOp op : {ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    s.options.op = op;
    expect_refused(s, StatusCode::kUnsupported, {"sum, avg and premul_sum", "use exact"});
  }
  s.options.op = ReduceOp::sum;
  s.input.dtype = s.output.dtype = DataType::i64;
  expect_refused(s, StatusCode::kUnsupported, {"int64", "use exact"});
}

TEST_F(Validate, ALossySpreadNeedsALossyReduction) {
  OperationSpec s = all_reduce();
  s.options.spread = Delivery::Kind::best_effort;
  expect_invalid(s, {"spread"});
  s.options.delivery = best_effort(1s);
  EXPECT_TRUE(validate(s, 0, kValidatingRanks).ok());
}

TEST_F(Validate, ARefusedCallIsToldToPeersAndTheNextOneIsRight) {
  EngineGroup group(GroupOptions{.size = 2});
  std::vector<float> a(100, 1.0f), b(100, 2.0f);
  OperationSpec wrong = all_reduce();
  wrong.output.count = 1;
  EXPECT_FALSE(group.submit(0, wrong).status.ok());
  const Request& theirs = group.submit(1, all_reduce());
  ASSERT_TRUE(group.run_until([&] { return theirs.done; }, 1s));
  EXPECT_EQ(theirs.status.code(), StatusCode::kMismatch);
  EXPECT_NE(theirs.status.text().find("rank 0 refused its own call (invalid_argument)"),
            std::string_view::npos)
      << theirs.status.text();
  OperationSpec first{.kind = OperationKind::all_reduce}, second{.kind = OperationKind::all_reduce};
  first.input = std::span(a);
  first.output = std::span(a);
  second.input = std::span(b);
  second.output = std::span(b);
  ASSERT_TRUE(group.run({&group.submit(0, first), &group.submit(1, second)}, 1s));
  EXPECT_EQ(a[0], 3.0f);
}

}  // namespace
}  // namespace leeway::collective
