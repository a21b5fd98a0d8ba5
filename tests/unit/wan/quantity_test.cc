#include "quantity.h"

#include <gtest/gtest.h>

#include <string>

namespace leeway::lab {
namespace {

TEST(Quantity, ReadsRatesAsPeopleWriteThem) {
  EXPECT_DOUBLE_EQ(*parse_rate_mbps("100Mb"), 100);
  EXPECT_DOUBLE_EQ(*parse_rate_mbps("1.5Gb/s"), 1500);
  EXPECT_DOUBLE_EQ(*parse_rate_mbps("800kbit"), 0.8);
  EXPECT_DOUBLE_EQ(*parse_rate_mbps("2000000"), 2);
}

TEST(Quantity, ReadsTimesSizesAndShares) {
  EXPECT_DOUBLE_EQ(*parse_time_ms("50ms"), 50);
  EXPECT_DOUBLE_EQ(*parse_time_ms("1.5s"), 1500);
  EXPECT_DOUBLE_EQ(*parse_time_ms("200us"), 0.2);
  EXPECT_EQ(*parse_bytes("64K"), 65536u);
  EXPECT_EQ(*parse_bytes("1500"), 1500u);
  EXPECT_DOUBLE_EQ(*parse_share("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_share("0.25"), 0.25);
}

TEST(Quantity, RefusesWithTheTextAndAnExample) {
  EXPECT_EQ(std::string(parse_rate_mbps("fast").status().text()),
            "'fast' is not a rate, such as 100Mb, 1.5Gb or 800kb (bits a second)");
  EXPECT_EQ(std::string(parse_time_ms("50").status().text()),
            "'50' is not a time, such as 50ms, 200us or 1.5s");
  EXPECT_FALSE(parse_rate_mbps("0Mb").ok());
  EXPECT_FALSE(parse_rate_mbps("-5Mb").ok());
  EXPECT_FALSE(parse_rate_mbps("nanMb").ok());
  EXPECT_FALSE(parse_rate_mbps("infMb").ok());
  EXPECT_FALSE(parse_rate_mbps("100 Mb").ok());
  EXPECT_FALSE(parse_rate_mbps("").ok());
  EXPECT_FALSE(parse_time_ms("ms").ok());
  EXPECT_FALSE(parse_bytes("0").ok());
  EXPECT_FALSE(parse_bytes("64Q").ok());
  EXPECT_FALSE(parse_share("101%").ok());
  EXPECT_FALSE(parse_share("-1%").ok());
}

}  // namespace
}  // namespace leeway::lab
