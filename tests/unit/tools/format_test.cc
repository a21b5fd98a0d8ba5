#include "format.h"

#include <gtest/gtest.h>

namespace leeway::tools {
namespace {

TEST(Format, IsPrintf) {
  EXPECT_EQ(format("%-4s|%5.1f %%", "ab", 2.25), "ab  |  2.2 %");
  EXPECT_EQ(format("%s", ""), "");
}

TEST(Format, KeepsTextOfAnyLength) {
  const std::string text(10'000, 'x');
  EXPECT_EQ(format("%s.", text.c_str()), text + ".");
}

}  // namespace
}  // namespace leeway::tools
