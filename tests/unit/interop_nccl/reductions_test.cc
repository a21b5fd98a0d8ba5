#include "interop/nccl/reductions.h"

#include <gtest/gtest.h>

namespace leeway::nccl {
namespace {

TEST(NcclReductions, BuiltInOnesHaveNcclsNumbers) {
  const Reductions reductions;
  const ReduceOp kInOrder[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min,
                               ReduceOp::avg};
  for (int op = 0; op < 5; ++op) {
    CollectiveOptions options;
    const void* in = nullptr;
    ASSERT_TRUE(reductions.resolve(op, DataType::f32, options, in).ok());
    EXPECT_EQ(options.op, kInOrder[op]);
  }
}

TEST(NcclReductions, MadeOnesAreOfTheirType) {
  Reductions reductions;
  const float half = 0.5f;
  const leeway_nccl_enum op = reductions.make(&half, DataType::f32, false);
  EXPECT_EQ(op, 5);
  CollectiveOptions options;
  const void* in = nullptr;
  ASSERT_TRUE(reductions.resolve(op, DataType::f32, options, in).ok());
  EXPECT_EQ(options.op, ReduceOp::premul_sum);
  EXPECT_EQ(options.factor, Scalar(0.5));
  EXPECT_FALSE(reductions.resolve(op, DataType::f64, options, in).ok());
  EXPECT_FALSE(reductions.resolve(op + 1, DataType::f32, options, in).ok());
  EXPECT_FALSE(reductions.resolve(-1, DataType::f32, options, in).ok());
}

TEST(NcclReductions, NumbersAreUsedAgain) {
  Reductions reductions;
  const std::int32_t two = 2;
  EXPECT_EQ(reductions.make(&two, DataType::i32, false), 5);
  EXPECT_EQ(reductions.make(&two, DataType::i32, false), 6);
  EXPECT_TRUE(reductions.destroy(5));
  EXPECT_FALSE(reductions.destroy(5));
  EXPECT_FALSE(reductions.destroy(4));
  EXPECT_EQ(reductions.make(&two, DataType::i32, false), 5);
}

TEST(NcclReductions, LaterIsReadWithEachCall) {
  Reductions reductions;
  const float factor = 1;
  const leeway_nccl_enum now = reductions.make(&factor, DataType::f32, false);
  const leeway_nccl_enum later = reductions.make(&factor, DataType::f32, true);
  CollectiveOptions options;
  const void* in = nullptr;
  ASSERT_TRUE(reductions.resolve(now, DataType::f32, options, in).ok());
  EXPECT_EQ(options.factor, Scalar(1.0));
  EXPECT_EQ(in, nullptr);
  ASSERT_TRUE(reductions.resolve(later, DataType::f32, options, in).ok());
  EXPECT_EQ(in, &factor);
}

TEST(NcclReductions, ScalarsOfAllTypesAreRead) {
  const auto scalar = [](auto value, DataType type) { return scalar_at(&value, type); };
  EXPECT_EQ(scalar(Half{0x3800}, DataType::f16), Scalar(0.5));
  EXPECT_EQ(scalar(BFloat16{0x4040}, DataType::bf16), Scalar(3.0));
  EXPECT_EQ(scalar(F8E4M3{0x38}, DataType::f8e4m3), Scalar(1.0));
  EXPECT_EQ(scalar(F8E5M2{0x40}, DataType::f8e5m2), Scalar(2.0));
  EXPECT_EQ(scalar(std::int8_t{-7}, DataType::i8), Scalar(-7));
  EXPECT_EQ(scalar(~std::uint64_t{0}, DataType::u64), Scalar(~std::uint64_t{0}));
  EXPECT_EQ(scalar(0.1, DataType::f64), Scalar(0.1));
}

TEST(NcclReductions, TypesHaveNcclsNumbers) {
  EXPECT_EQ(type_of(0), DataType::i8);
  EXPECT_EQ(type_of(7), DataType::f32);
  EXPECT_EQ(type_of(9), DataType::bf16);
  EXPECT_EQ(type_of(11), DataType::f8e5m2);
  EXPECT_FALSE(type_of(12).has_value());
  EXPECT_FALSE(type_of(-1).has_value());
}

}  // namespace
}  // namespace leeway::nccl
