// The C file beside this one compiles as C99 without a warning, and works.
#include <gtest/gtest.h>

#include "leeway/c.h"

extern "C" int c99_sum_of_two_ranks(float* sum);
extern "C" int c99_initialisers_compile(void);

namespace leeway::c_abi {
namespace {

TEST(C99, AProgramAddsUp) {
  float sum = 0.0f;
  EXPECT_EQ(c99_sum_of_two_ranks(&sum), LEEWAY_OK) << leeway_last_error();
  EXPECT_EQ(sum, 3.0f);
}

TEST(C99, InitialisersKnowTheSizeOfTheirStructs) {
  EXPECT_TRUE(c99_initialisers_compile());
}

}  // namespace
}  // namespace leeway::c_abi
