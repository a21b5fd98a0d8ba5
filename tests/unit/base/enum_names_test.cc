#include <gtest/gtest.h>

#include "base/short_names.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
namespace {

TEST(ToString, SpellsDataTypesAsNcclTestsDo) {
  EXPECT_EQ(to_string(DataType::f32), "float");
  EXPECT_EQ(to_string(DataType::f64), "double");
  EXPECT_EQ(to_string(DataType::f16), "half");
  EXPECT_EQ(to_string(DataType::bf16), "bfloat16");
  EXPECT_EQ(to_string(DataType::i8), "int8");
  EXPECT_EQ(to_string(DataType::i32), "int32");
  EXPECT_EQ(to_string(DataType::i64), "int64");
  EXPECT_EQ(to_string(DataType::u8), "uint8");
  EXPECT_EQ(to_string(DataType::u32), "uint32");
  EXPECT_EQ(to_string(DataType::u64), "uint64");
  EXPECT_EQ(to_string(DataType::f8e4m3), "f8e4m3");
  EXPECT_EQ(to_string(DataType::f8e5m2), "f8e5m2");
  EXPECT_EQ(to_string(DataType::boolean), "bool");
}

TEST(ToString, NamesTheOtherEnumerations) {
  EXPECT_EQ(to_string(ReduceOp::sum), "sum");
  EXPECT_EQ(to_string(ReduceOp::avg), "avg");
  EXPECT_EQ(to_string(ReduceOp::prod), "prod");
  EXPECT_EQ(to_string(ReduceOp::min), "min");
  EXPECT_EQ(to_string(ReduceOp::max), "max");
  EXPECT_EQ(to_string(ReduceOp::premul_sum), "premul_sum");
  EXPECT_EQ(to_string(ReduceOp::band), "band");
  EXPECT_EQ(to_string(ReduceOp::bor), "bor");
  EXPECT_EQ(to_string(ReduceOp::bxor), "bxor");
  EXPECT_EQ(to_string(Delivery::Kind::exact), "exact");
  EXPECT_EQ(to_string(Delivery::Kind::bounded), "bounded");
  EXPECT_EQ(to_string(Delivery::Kind::best_effort), "best_effort");
  EXPECT_EQ(to_string(StatusCode::kOk), "ok");
  EXPECT_EQ(to_string(StatusCode::kMismatch), "mismatch");
  EXPECT_EQ(to_string(StatusCode::kDeadlineExceeded), "deadline_exceeded");
  EXPECT_EQ(to_string(StatusCode::kResourceExhausted), "resource_exhausted");
  EXPECT_EQ(to_string(StatusCode::kInternal), "internal");
}

// Bytes of received datagrams are cast to enums unchecked, so to_string() may get any value.
TEST(ToString, CallsValuesThatDoNotExistUnknown) {
  EXPECT_EQ(to_string(static_cast<DataType>(13)), "unknown");
  EXPECT_EQ(to_string(static_cast<ReduceOp>(255)), "unknown");
  EXPECT_EQ(to_string(static_cast<Estimator>(6)), "unknown");
}

TEST(ParseCodecName, ReadsEveryNameItWrites) {
  for (int i = 0; i < kCodecCount; ++i) {
    const auto codec = static_cast<Codec>(i);
    EXPECT_NE(to_string(codec), "unknown") << i;
    const auto parsed = parse_codec_name(to_string(codec));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, codec);
  }
  EXPECT_EQ(to_string(static_cast<Codec>(kCodecCount)), "unknown");
}

TEST(ParseEstimator, ReadsEveryNameItWrites) {
  for (const Estimator estimator :
       {Estimator::zero_fill, Estimator::ratio, Estimator::symmetric_ratio, Estimator::stratified,
        Estimator::horvitz_thompson, Estimator::augmented}) {
    const auto parsed = parse_estimator(to_string(estimator));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, estimator);
  }
}

TEST(ShortTypeName, IsReadBack) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(type_of_short_name(short_name(type)), type) << to_string(type);
  }
  EXPECT_EQ(short_name(DataType::f8e5m2), "f8e5m2");
  EXPECT_EQ(short_name(DataType::u64), "u64");
  EXPECT_EQ(short_name(DataType::boolean), "bool");
  EXPECT_EQ(type_of_short_name("float"), std::nullopt);
}

TEST(ParseCodecName, QuotesAnUnknownNameAndListsTheValidOnes) {
  const auto parsed = parse_codec_name(std::string(100, 'x'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(parsed.status().text().find("unknown codec \"xxx"), 0u);
  EXPECT_NE(parsed.status().text().find("valid are native, fp32, "), std::string_view::npos);
  EXPECT_TRUE(parsed.status().text().ends_with("sparse, automatic")) << "the list was cut";
}

TEST(ParseEstimator, ListsTheValidOnesEvenAfterAnEndlessName) {
  const auto parsed = parse_estimator(std::string(10'000, 'x'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().text().find("horvitz_thompson, augmented"), std::string_view::npos);
}

TEST(ParseEstimator, IsStrictAboutCaseAndEmptiness) {
  EXPECT_FALSE(parse_estimator("Ratio").ok());
  EXPECT_FALSE(parse_estimator("").ok());
  EXPECT_FALSE(parse_estimator("ratio ").ok());
}

}  // namespace
}  // namespace leeway
