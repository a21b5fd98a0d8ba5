#include "perf/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "perf/element.h"

namespace leeway::tools::perf {
namespace {

constexpr DataType kTypes[] = {DataType::f32, DataType::f64, DataType::f16,    DataType::bf16,
                               DataType::i8,  DataType::i32, DataType::i64,    DataType::u8,
                               DataType::u32, DataType::u64, DataType::f8e4m3, DataType::f8e5m2};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod,
                             ReduceOp::min, ReduceOp::max, ReduceOp::premul_sum};

Pattern pattern_of(ReduceOp op, DataType type, int ranks, Codec codec = Codec::native) {
  CollectiveOptions options;
  options.op = op;
  options.codec = codec;
  return Pattern(options, type, ranks);
}

// Every partial sum, in any order of ranks, must be an integer that the type holds exactly.
TEST(Pattern, NoPartialSumIsEverRounded) {
  for (const DataType type : kTypes) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      for (const int ranks : {1, 2, 3, 4, 7, 64, 300}) {
        const Pattern pattern = pattern_of(op, type, ranks);
        for (std::size_t i = 0; i < 50; ++i) {
          double magnitudes = 0;
          for (int rank = 0; rank < ranks; ++rank)
            magnitudes += std::abs(pattern.contribution(rank, i));
          ASSERT_LE(magnitudes, integer_max(type)) << to_string(type) << " " << ranks;
        }
      }
    }
  }
}

TEST(Pattern, ContributionsAndResultsAreIntegers) {
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      const Pattern pattern = pattern_of(op, type, 3);
      for (std::size_t i = 0; i < 100; ++i) {
        ASSERT_EQ(pattern.contribution(1, i), std::round(pattern.contribution(1, i)));
        ASSERT_EQ(pattern.reduced(i), std::round(pattern.reduced(i)))
            << to_string(type) << " " << to_string(op);
        ASSERT_LE(std::abs(pattern.reduced(i)), integer_max(type));
      }
    }
  }
}

TEST(Pattern, UnsignedTypeGetsNoNegativeValue) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::u8, 4);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_GE(pattern.contribution(2, i), 0);
}

TEST(Pattern, BitsAreThoseOfWholeNumbers) {
  for (const DataType type : {DataType::i8, DataType::u8, DataType::i64, DataType::boolean}) {
    for (const ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
      const Pattern pattern = pattern_of(op, type, 2);
      for (std::size_t i = 0; i < 100; ++i) {
        const auto a = static_cast<std::uint64_t>(pattern.contribution(0, i));
        const auto b = static_cast<std::uint64_t>(pattern.contribution(1, i));
        const std::uint64_t bits = op == ReduceOp::band  ? a & b
                                   : op == ReduceOp::bor ? a | b
                                                         : a ^ b;
        ASSERT_EQ(pattern.reduced(i), static_cast<double>(bits)) << to_string(type);
      }
    }
  }
}

TEST(Pattern, ASumOfTruthsIsTrueWhereOneIs) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::boolean, 3);
  for (std::size_t i = 0; i < 100; ++i) {
    const double most = std::max(
        {pattern.contribution(0, i), pattern.contribution(1, i), pattern.contribution(2, i)});
    ASSERT_EQ(pattern.reduced(i), most);
  }
}

TEST(Pattern, EachRankIsMultipliedByItsFactor) {
  const Pattern pattern = pattern_of(ReduceOp::premul_sum, DataType::f32, 2);
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(pattern.reduced(i), Pattern::factor_of(0) * pattern.contribution(0, i) +
                                      Pattern::factor_of(1) * pattern.contribution(1, i));
  }
}

TEST(Pattern, NarrowCodecLimitsTheSum) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::f32, 4, Codec::bf16);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_LE(std::abs(pattern.reduced(i)), 256);
}

TEST(Pattern, NarrowCodecOfTheSpreadHalfLimitsTheSumToo) {
  CollectiveOptions options;
  options.codec = Codec::nvfp4;
  options.spread_codec = Codec::fp16;
  const Pattern pattern(options, DataType::f32, 4);
  double largest = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_LE(std::abs(pattern.reduced(i)), 2048);
    largest = std::max(largest, std::abs(pattern.reduced(i)));
  }
  EXPECT_GT(largest, 1024);
}

TEST(Pattern, SumsCentreOnZeroLikeGradients) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::f32, 4);
  constexpr int kSamples = 20000;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    sum += pattern.contribution(1, i);
    squares += pattern.contribution(1, i) * pattern.contribution(1, i);
  }
  const double standard_error = std::sqrt(squares / kSamples) / std::sqrt(double{kSamples});
  EXPECT_LT(std::abs(sum / kSamples), 4 * standard_error);
}

TEST(Pattern, RanksAndPositionsDiffer) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::f32, 4);
  std::set<double> values;
  for (int rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < 250; ++i) values.insert(pattern.contribution(rank, i));
  }
  EXPECT_GT(values.size(), 990u);  // 1000 draws from 524,289 values: 1 pair of equals is expected
}

TEST(Pattern, AverageIsTheSumDividedByTheRanks) {
  const Pattern pattern = pattern_of(ReduceOp::avg, DataType::f32, 3);
  for (std::size_t i = 0; i < 100; ++i) {
    const double sum =
        pattern.contribution(0, i) + pattern.contribution(1, i) + pattern.contribution(2, i);
    ASSERT_EQ(pattern.reduced(i) * 3, sum);
  }
}

TEST(FillExpected, BlocksComeFromTheirSources) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::i32, 3);
  std::vector<std::int32_t> expected(6);
  ASSERT_TRUE(fill_expected(pattern, Operation::all_to_all, 1, 3, 0, 2, std::span(expected)));
  for (int source = 0; source < 3; ++source) {
    EXPECT_EQ(expected[2 * source], pattern.contribution(source, 2));
    EXPECT_EQ(expected[2 * source + 1], pattern.contribution(source, 3));
  }
}

TEST(FillExpected, ReduceScatterTakesTheOwnBlockOfTheSum) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::i32, 3);
  std::vector<std::int32_t> expected(2);
  ASSERT_TRUE(fill_expected(pattern, Operation::reduce_scatter, 2, 3, 0, 2, std::span(expected)));
  EXPECT_EQ(expected[0], pattern.reduced(4));
  EXPECT_EQ(expected[1], pattern.reduced(5));
}

TEST(FillExpected, NonRootHasNothingToExpect) {
  const Pattern pattern = pattern_of(ReduceOp::sum, DataType::i32, 3);
  std::vector<std::int32_t> expected(2);
  EXPECT_FALSE(fill_expected(pattern, Operation::reduce, 2, 3, 0, 2, std::span(expected)));
}

TEST(Compare, EqualTensorsHaveNoError) {
  const std::vector<float> truth{1, -2, 3};
  const Comparison comparison = compare(std::span(truth), std::span(truth));
  EXPECT_EQ(comparison.wrong, 0u);
  EXPECT_EQ(comparison.error_squares, 0);
  EXPECT_EQ(comparison.truth_squares, 14);
}

TEST(Compare, CountsAndMeasuresDifferences) {
  const std::vector<float> truth{1, -2, 3};
  const std::vector<float> output{1, 0, 2};
  const Comparison comparison = compare(std::span(output), std::span(truth));
  EXPECT_EQ(comparison.wrong, 2u);
  EXPECT_EQ(comparison.error_squares, 5);
}

TEST(Compare, BitsAreComparedNotValues) {
  const std::vector<float> truth{0.0f};
  const std::vector<float> output{-0.0f};
  EXPECT_EQ(compare(std::span(output), std::span(truth)).wrong, 1u);
}

}  // namespace
}  // namespace leeway::tools::perf
