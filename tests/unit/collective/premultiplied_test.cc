// A premul_sum of inputs must equal the sum of their products with the factors, bit for bit. This
// holds for every type, codec and delivery class, and whether or not the input is copied.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codec/reduce.h"
#include "support/engine_group.h"
#include "support/typed_tensor.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;
using testing::TypedTensor;

constexpr int kMultipliers = 3;

struct Premultiplied {
  OperationKind kind = OperationKind::all_reduce;
  DataType dtype = DataType::f32;
  std::size_t count = 30000;  // more elements than are copied
  CodecOptions codec;
  Delivery delivery = exact(10s);
  Estimator estimator = Estimator::ratio;
  double loss = 0.0;
  bool residual = false;
};

Scalar factor_of(Rank rank, DataType dtype) {
  if (is_floating(dtype)) return 0.3 + rank;
  return 3 + rank;
}

std::vector<TypedTensor> inputs_of(const Premultiplied& job) {
  std::vector<TypedTensor> inputs;
  for (Rank rank = 0; rank < kMultipliers; ++rank) {
    inputs.emplace_back(job.dtype, job.count);
    for (std::size_t i = 0; i < job.count; ++i) {
      const double value = std::sin(static_cast<double>(7 * i + rank));
      inputs[rank].set(i, is_floating(job.dtype) ? value : std::trunc(50 * value));
    }
  }
  return inputs;
}

// Runs the call on all ranks and returns their results.
std::vector<TypedTensor> run(const Premultiplied& job, std::vector<TypedTensor> inputs,
                             bool by_operation) {
  GroupOptions network{.size = kMultipliers};
  network.faults.loss = job.loss;
  EngineGroup group(network);
  std::vector<TypedTensor> outputs(
      kMultipliers,
      TypedTensor(job.dtype, job.kind == OperationKind::reduce_scatter ? job.count / kMultipliers
                                                                       : job.count));
  std::vector<std::vector<float>> residuals(kMultipliers, std::vector<float>(job.count, 0.125f));
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{
        .kind = job.kind, .input = inputs[rank].view(), .output = outputs[rank].view()};
    spec.options.delivery = job.delivery;
    spec.options.codec = job.codec;
    spec.options.estimator = job.estimator;
    if (job.residual) spec.options.residual = residuals[rank];
    if (by_operation) {
      spec.options.op = ReduceOp::premul_sum;
      spec.options.factor = factor_of(rank, job.dtype);
    }
    return spec;
  });
  EXPECT_TRUE(group.run(requests));
  for (const Request* request : requests)
    EXPECT_TRUE(request->status.ok()) << request->status.text();
  return outputs;
}

void expect_sum_of_products(const Premultiplied& job) {
  std::vector<TypedTensor> inputs = inputs_of(job);
  const auto premultiplied = run(job, inputs, true);
  for (Rank rank = 0; rank < kMultipliers; ++rank) {
    const TensorView products = inputs[rank].view();
    codec::multiply(job.dtype, factor_of(rank, job.dtype), inputs[rank].bytes(),
                    {static_cast<std::byte*>(products.data), products.bytes()});
  }
  const auto summed = run(job, inputs, false);
  for (Rank rank = 0; rank < kMultipliers; ++rank)
    EXPECT_TRUE(premultiplied[rank] == summed[rank]) << "rank " << rank;
}

TEST(PremultipliedSum, IsTheSumOfProductsInEveryType) {
  for (int type = 0; type < kDataTypeCount; ++type) {
    const auto dtype = static_cast<DataType>(type);
    if (dtype == DataType::boolean) continue;
    SCOPED_TRACE(to_string(dtype));
    expect_sum_of_products({.dtype = dtype});
    expect_sum_of_products({.kind = OperationKind::reduce_scatter, .dtype = dtype});
  }
}

TEST(PremultipliedSum, OfASmallInputWhichIsCopied) {
  expect_sum_of_products({.kind = OperationKind::reduce_scatter, .count = 300});
  expect_sum_of_products(
      {.kind = OperationKind::reduce_scatter, .dtype = DataType::i64, .count = 300});
}

TEST(PremultipliedSum, OfEncodedContributions) {
  for (const char* codec : {"bf16", "fp8_e4m3", "nvfp4", "nvfp4:rotate", "sparse:2/4"}) {
    SCOPED_TRACE(codec);
    expect_sum_of_products({.codec = parse_codec(codec).value()});
  }
}

TEST(PremultipliedSum, OfWhatArrived) {
  for (const Estimator estimator : {Estimator::zero_fill, Estimator::ratio, Estimator::stratified,
                                    Estimator::horvitz_thompson, Estimator::augmented}) {
    SCOPED_TRACE(to_string(estimator));
    expect_sum_of_products({.delivery = best_effort(10s), .estimator = estimator, .loss = 0.2});
  }
  expect_sum_of_products({.dtype = DataType::bf16, .delivery = best_effort(10s), .loss = 0.2});
}

// The residual is the part of products that encoding left out, so it is not multiplied again.
TEST(PremultipliedSum, LeavesTheResidualAsItIs) {
  expect_sum_of_products({.codec = Codec::nvfp4, .residual = true});
}

}  // namespace
}  // namespace leeway::collective
