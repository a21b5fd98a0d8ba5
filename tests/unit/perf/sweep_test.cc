#include "perf/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::tools::perf {
namespace {

using testing::ElementsAre;

TEST(ParseBytes, PlainNumberIsBytes) {
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("12B"), 12u);
}

TEST(ParseBytes, SuffixesArePowersOfTwo) {
  EXPECT_EQ(*parse_bytes("4K"), 4096u);
  EXPECT_EQ(*parse_bytes("4k"), 4096u);
  EXPECT_EQ(*parse_bytes("4KB"), 4096u);
  EXPECT_EQ(*parse_bytes("4KiB"), 4096u);
  EXPECT_EQ(*parse_bytes("16M"), 16777216u);
  EXPECT_EQ(*parse_bytes("1G"), 1073741824u);
}

TEST(ParseBytes, AnythingElseIsRefusedAndQuoted) {
  for (const char* text : {"", "K", "-1", "4X", "4Ki", "4 K", "1.5M", "BB", "99999999999999999999",
                           "18446744073709551615K"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().text()),
                testing::HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(Sweep, GrowsByTheFactorUpToTheMaximum) {
  EXPECT_THAT(*sweep(4096, 16777216, 16), ElementsAre(4096, 65536, 1048576, 16777216));
  EXPECT_THAT(*sweep(8, 100, 2), ElementsAre(8, 16, 32, 64));
}

TEST(Sweep, EqualEndsGiveOneSize) {
  EXPECT_THAT(*sweep(4096, 4096, 2), ElementsAre(4096));
}

TEST(Sweep, DoesNotOverflowAtTheLargestSize) {
  const std::size_t huge = ~std::size_t{0};
  EXPECT_THAT(*sweep(huge / 2, huge, 2), ElementsAre(huge / 2, huge - 1));
}

TEST(Sweep, EndlessAndEmptySweepsAreRefused) {
  EXPECT_FALSE(sweep(0, 16, 2).ok());
  EXPECT_FALSE(sweep(32, 16, 2).ok());
  EXPECT_FALSE(sweep(16, 32, 1).ok());
  EXPECT_FALSE(sweep(16, 32, 0).ok());
}

}  // namespace
}  // namespace leeway::tools::perf
