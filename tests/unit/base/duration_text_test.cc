#include "base/duration_text.h"

#include <gtest/gtest.h>

namespace leeway {
namespace {

using namespace std::chrono_literals;

// A deadline of 437 us must not read "0 ms", which would look like a defect.
TEST(DurationText, HasDigitsBehindThePointWhereTheySayAnything) {
  EXPECT_STREQ(in_milliseconds(437us).data(), "0.437 ms");
  EXPECT_STREQ(in_milliseconds(2ms).data(), "2 ms");
  EXPECT_STREQ(in_milliseconds(9'999us).data(), "9.999 ms");
  EXPECT_STREQ(in_milliseconds(10'400us).data(), "10 ms");
  EXPECT_STREQ(in_milliseconds(60s).data(), "60000 ms");
}

}  // namespace
}  // namespace leeway
