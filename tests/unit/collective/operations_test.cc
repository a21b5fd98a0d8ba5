// Tests every operation, element type and size against the reference, without and with loss.
#include <gtest/gtest.h>

#include "codec/reduce.h"
#include "support/reference_call.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using testing::CallShape;
using testing::EngineGroup;
using testing::GroupOptions;
using testing::ReferenceCall;

constexpr std::array kDataTypes = {
    DataType::f32,    DataType::f64,    DataType::f16,    DataType::bf16, DataType::i8,
    DataType::i32,    DataType::i64,    DataType::u8,     DataType::u32,  DataType::u64,
    DataType::f8e4m3, DataType::f8e5m2, DataType::boolean};
constexpr std::array kKinds = {
    OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::all_gather,
    OperationKind::broadcast,  OperationKind::reduce,         OperationKind::gather,
    OperationKind::scatter,    OperationKind::all_to_all,     OperationKind::send};

GroupOptions network(int size, double loss) {
  GroupOptions options{.size = size};
  options.faults.loss = loss;
  return options;
}

std::string describe(const CallShape& shape, double loss) {
  return std::string(to_string(shape.kind)) + " " + std::string(to_string(shape.options.op)) + " " +
         std::string(to_string(shape.dtype)) + " x " + std::to_string(shape.count) + ", " +
         std::to_string(shape.size) + " ranks, root " + std::to_string(shape.root) +
         (shape.in_place ? ", in place" : "") + ", loss " + std::to_string(loss);
}

void expect_exact(const CallShape& shape, double loss) {
  SCOPED_TRACE(describe(shape, loss));
  EngineGroup group(network(shape.size, loss));
  ReferenceCall call(shape);
  ASSERT_TRUE(call.run(group));
  EXPECT_TRUE(call.check());
  for (const Request* request : call.requests()) {
    EXPECT_EQ(request->report.loss, 0.0);
    EXPECT_TRUE(request->report.complete);
  }
  EXPECT_TRUE(group.settle());
}

class OperationExact : public ::testing::TestWithParam<std::tuple<OperationKind, DataType>> {};

TEST_P(OperationExact, EqualsTheReferenceForEverySizeAndGroup) {
  const auto [kind, dtype] = GetParam();
  for (int size = kind == OperationKind::send ? 2 : 1; size <= 4; ++size) {
    for (const std::size_t count : {0, 1, 31, 1000, testing::kTakesAll ? 20000 : 6000}) {
      for (const double loss : {0.0, 0.2}) {
        expect_exact({.kind = kind, .dtype = dtype, .size = size, .count = count}, loss);
      }
    }
  }
}

TEST_P(OperationExact, MayHaveAnyRootAndWorkInPlace) {
  const auto [kind, dtype] = GetParam();
  for (Rank root = 0; root < 3; ++root) {
    expect_exact(
        {.kind = kind, .dtype = dtype, .size = 3, .count = 5000, .root = root, .in_place = true},
        0.2);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperationExact,
                         ::testing::Combine(::testing::ValuesIn(kKinds),
                                            ::testing::ValuesIn(kDataTypes)),
                         [](const auto& row) {
                           std::string name = std::string(to_string(std::get<0>(row.param))) + "_" +
                                              std::string(to_string(std::get<1>(row.param)));
                           std::erase(name, '_');
                           return name;
                         });

class ReduceOpExact : public ::testing::TestWithParam<std::tuple<ReduceOp, DataType>> {};

TEST_P(ReduceOpExact, EqualsTheReferenceInEveryReducingOperation) {
  const auto [op, dtype] = GetParam();
  if (!codec::is_defined(op, dtype)) return;  // refused: validation_test.cc
  for (const OperationKind kind :
       {OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::reduce}) {
    for (int size = 1; size <= 4; ++size) {
      for (const std::size_t count : {31, 5000}) {
        CallShape shape{.kind = kind, .dtype = dtype, .size = size, .count = count};
        shape.options.op = op;
        expect_exact(shape, 0.2);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceOpExact,
                         ::testing::Combine(::testing::Values(ReduceOp::avg, ReduceOp::prod,
                                                              ReduceOp::min, ReduceOp::max,
                                                              ReduceOp::premul_sum, ReduceOp::band,
                                                              ReduceOp::bor, ReduceOp::bxor),
                                            ::testing::ValuesIn(kDataTypes)),
                         [](const auto& row) {
                           std::string name = std::string(to_string(std::get<0>(row.param))) +
                                              std::string(to_string(std::get<1>(row.param)));
                           std::erase(name, '_');
                           return name;
                         });

class OperationBarrier : public ::testing::TestWithParam<bool> {
 protected:
  static GroupOptions options(int size, double loss) {
    GroupOptions options = network(size, loss);
    options.one_host = GetParam();
    return options;
  }
};

TEST_P(OperationBarrier, NobodyLeavesBeforeTheLastHasCome) {
  for (int size = 2; size <= 5; ++size) {
    for (const double loss : {0.0, 0.2}) {
      EngineGroup group(options(size, loss));
      std::vector<Request*> requests;
      const OperationSpec spec{.kind = OperationKind::barrier};
      for (Rank rank = 0; rank + 1 < size; ++rank) requests.push_back(&group.submit(rank, spec));
      EXPECT_FALSE(group.run_until(
          [&] {
            return std::any_of(requests.begin(), requests.end(),
                               [](auto* request) { return request->done; });
          },
          std::chrono::seconds(1)));
      requests.push_back(&group.submit(static_cast<Rank>(size - 1), spec));
      ASSERT_TRUE(group.run(requests));
      for (const Request* request : requests)
        EXPECT_TRUE(request->status.ok()) << request->status.text();
    }
  }
}

TEST_P(OperationBarrier, OneRankNeedsNobody) {
  EngineGroup group(options(1, 0.0));
  EXPECT_TRUE(group.submit(0, {.kind = OperationKind::barrier}).done);
}

INSTANTIATE_TEST_SUITE_P(BetweenHosts, OperationBarrier, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(OnOneHost, OperationBarrier, ::testing::Values(true));

}  // namespace
}  // namespace leeway::collective
