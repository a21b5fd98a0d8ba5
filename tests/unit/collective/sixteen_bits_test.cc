// Codecs of float16 and bfloat16 tensors through whole operations: results are those of the same
// values in float32, rounded to the tensor's type once, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/engine_group.h"
#include "support/typed_tensor.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;
using testing::TypedTensor;

constexpr int kHalfRanks = 3;
constexpr const char* kCodecs[] = {
    "fp32",         "fp16",       "bf16", "fp8_e4m3", "fp8_e5m2_block", "nvfp4",
    "nvfp4:rotate", "mxfp6_e2m3", "luq",  "int8",     "sparse"};

struct SixteenBitJob {
  OperationKind kind = OperationKind::reduce_scatter;
  CollectiveOptions options;
  double loss = 0.0;
};

std::size_t input_count(OperationKind kind) {
  return kind == OperationKind::all_gather ? 4000 : 12000;
}
std::size_t output_count(OperationKind kind) {
  return kind == OperationKind::reduce_scatter ? 4000 : 12000;
}

// Runs the call in type `dtype` on values that `narrow` holds exactly, and returns the results.
std::vector<TypedTensor> results(const SixteenBitJob& job, DataType narrow, DataType dtype) {
  GroupOptions network{.size = kHalfRanks};
  network.faults.loss = job.loss;
  EngineGroup group(network);
  std::vector<TypedTensor> inputs;
  std::vector<TypedTensor> outputs;
  for (Rank rank = 0; rank < kHalfRanks; ++rank) {
    TypedTensor rounded(narrow, 1);
    inputs.emplace_back(dtype, input_count(job.kind));
    for (std::size_t i = 0; i < inputs[rank].count(); ++i) {
      rounded.set(0, std::sin(static_cast<double>(7 * i + rank)) * (1.0 + rank));
      inputs[rank].set(i, rounded.get(0));
    }
    outputs.emplace_back(dtype, output_count(job.kind));
  }
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{
        .kind = job.kind, .input = inputs[rank].view(), .output = outputs[rank].view()};
    if (job.kind == OperationKind::broadcast) {
      spec.peer = 1;
      outputs[rank] = inputs[rank];
      spec.input = spec.output = outputs[rank].view();
    }
    spec.options = job.options;
    return spec;
  });
  EXPECT_TRUE(group.run(requests));
  for (const Request* request : requests)
    EXPECT_TRUE(request->status.ok()) << request->status.text();
  return outputs;
}

void expect_rounded_floats(const SixteenBitJob& job) {
  for (const DataType narrow : {DataType::f16, DataType::bf16}) {
    SCOPED_TRACE(to_string(narrow));
    const auto of_floats = results(job, narrow, DataType::f32);
    const auto of_narrow = results(job, narrow, narrow);
    for (Rank rank = 0; rank < kHalfRanks; ++rank) {
      TypedTensor rounded(narrow, of_floats[rank].count());
      for (std::size_t i = 0; i < rounded.count(); ++i) rounded.set(i, of_floats[rank].get(i));
      ASSERT_TRUE(rounded == of_narrow[rank]) << "rank " << rank;
    }
  }
}

class SixteenBitCodec : public ::testing::TestWithParam<const char*> {
 protected:
  CollectiveOptions options(ReduceOp op = ReduceOp::sum) {
    CollectiveOptions options{.op = op, .delivery = exact(10s)};
    options.codec = parse_codec(GetParam()).value();
    return options;
  }
};

TEST_P(SixteenBitCodec, ReductionsRoundTheSumOfFloatsOnce) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg})
    expect_rounded_floats({.options = options(op)});
}

TEST_P(SixteenBitCodec, LossyReductionsDoToo) {
  for (const Estimator estimator : {Estimator::ratio, Estimator::stratified,
                                    Estimator::horvitz_thompson, Estimator::augmented}) {
    SixteenBitJob job{.options = options(ReduceOp::avg), .loss = 0.2};
    job.options.delivery = best_effort(10s);
    job.options.estimator = estimator;
    expect_rounded_floats(job);
  }
}

TEST_P(SixteenBitCodec, MovedElementsAreThoseOfFloats) {
  expect_rounded_floats({.kind = OperationKind::all_gather, .options = options()});
  expect_rounded_floats({.kind = OperationKind::broadcast, .options = options()});
  expect_rounded_floats({.kind = OperationKind::all_to_all, .options = options()});
}

// The spread half encodes values that the reduce half has rounded, so both halves are tested.
TEST_P(SixteenBitCodec, AllRanksHoldTheSameSum) {
  SixteenBitJob job{.kind = OperationKind::all_reduce, .options = options(ReduceOp::avg)};
  job.options.spread_codec = parse_codec("bf16").value();
  for (const DataType narrow : {DataType::f16, DataType::bf16}) {
    const auto outputs = results(job, narrow, narrow);
    EXPECT_TRUE(outputs[1] == outputs[0]);
    EXPECT_TRUE(outputs[2] == outputs[0]);
  }
  job.options.spread_codec.reset();
  const auto outputs = results(job, DataType::bf16, DataType::bf16);
  EXPECT_TRUE(outputs[1] == outputs[0]);
  EXPECT_TRUE(outputs[2] == outputs[0]);
}

INSTANTIATE_TEST_SUITE_P(All, SixteenBitCodec, ::testing::ValuesIn(kCodecs), [](const auto& row) {
  std::string name(row.param);
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

}  // namespace
}  // namespace leeway::collective
