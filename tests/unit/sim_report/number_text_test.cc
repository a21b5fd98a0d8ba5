#include "report/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace leeway::sim {
namespace {

TEST(ExactText, ReadsBackAsTheSameNumber) {
  EXPECT_EQ(exact_text(0.1), "0.1");
  EXPECT_EQ(exact_text(100), "100");
  EXPECT_EQ(*number_of(exact_text(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(*number_of(exact_text(5e-324)), 5e-324);
  EXPECT_EQ(exact_text(std::nan("")), "");
  EXPECT_EQ(exact_text(-std::numeric_limits<double>::infinity()), "");
}

TEST(MillisecondsText, IsExact) {
  EXPECT_EQ(milliseconds_text(1'500'000), "1.5");
  EXPECT_EQ(milliseconds_text(1), "0.000001");
  EXPECT_EQ(milliseconds_text(-2'000'000), "-2");
  EXPECT_EQ(milliseconds_text(-1), "-0.000001");
  EXPECT_EQ(milliseconds_text(9'007'199'254'740'993), "9007199254.740993");
  EXPECT_EQ(milliseconds_text(0), "0");
}

TEST(ShortText, FourDigits) {
  EXPECT_EQ(short_text(0), "0");
  EXPECT_EQ(short_text(1234567), "1,234,567");
  EXPECT_EQ(short_text(-1234.56), "-1,235");
  EXPECT_EQ(short_text(12.3456), "12.35");
  EXPECT_EQ(short_text(0.00123456), "0.001235");
  EXPECT_EQ(short_text(0.5), "0.5");
  EXPECT_EQ(short_text(100), "100");
  EXPECT_EQ(short_text(1.23456e-7), "1.235e-07");
  EXPECT_EQ(short_text(6.02214e23), "6.022e+23");
  EXPECT_EQ(short_text(std::nan("")), "–");
}

TEST(ShortText, MeanIsAsExactAsItsError) {
  EXPECT_EQ(short_text(12.3456, 0.1234), "12.35 ± 0.12");
  EXPECT_EQ(short_text(12.3456, std::nan("")), "12.35");
  EXPECT_EQ(short_text(12.3456, 0), "12.35");
  EXPECT_EQ(short_text(123456, 1234), "123,456 ± 1,234");
  EXPECT_EQ(short_text(0.5, 1e-7), "0.5 ± 1.0e-07");
  EXPECT_EQ(short_text(std::nan(""), 1), "–");
}

TEST(CountText, GroupsOfThree) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(NumberOf, WholeTextOrNothing) {
  EXPECT_EQ(number_of("0.25"), 0.25);
  EXPECT_EQ(number_of("1e6"), 1e6);
  EXPECT_FALSE(number_of("int8"));
  EXPECT_FALSE(number_of("1x"));
  EXPECT_FALSE(number_of(""));
  EXPECT_FALSE(number_of("inf"));
}

TEST(HashText, SixteenDigits) {
  EXPECT_EQ(hash_text(0), "0000000000000000");
  EXPECT_EQ(hash_text(0xabc), "0000000000000abc");
  EXPECT_EQ(hash_text(UINT64_MAX), "ffffffffffffffff");
}

}  // namespace
}  // namespace leeway::sim
