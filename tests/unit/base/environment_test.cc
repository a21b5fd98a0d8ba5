#include "base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace leeway {
namespace {

bool holds(std::string_view entry) {
  for (const char* const* variable = environment(); *variable != nullptr; ++variable) {
    if (entry == *variable) return true;
  }
  return false;
}

TEST(Environment, HasWhatTheProgramSet) {
  EXPECT_FALSE(holds("LEEWAY_TEST_VARIABLE=here"));
  ::setenv("LEEWAY_TEST_VARIABLE", "here", 1);
  EXPECT_TRUE(holds("LEEWAY_TEST_VARIABLE=here"));
  ::unsetenv("LEEWAY_TEST_VARIABLE");
  EXPECT_FALSE(holds("LEEWAY_TEST_VARIABLE=here"));
}

TEST(Environment, OfNoVariablesIsEmpty) {
  ASSERT_EQ(::clearenv(), 0);
  EXPECT_EQ(*environment(), nullptr);
}

}  // namespace
}  // namespace leeway
