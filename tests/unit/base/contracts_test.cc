#include "base/contracts.h"

#include <gtest/gtest.h>

namespace leeway {
namespace {

TEST(ContractsDeathTest, ABrokenContractNamesConditionAndFile) {
  const int size = 3;
  EXPECT_DEATH(LEEWAY_ASSERT(size == 4), "contracts_test.cc:[0-9]+: contract broken: size == 4");
}

TEST(Contracts, AKeptContractEvaluatesItsConditionOnce) {
  int calls = 0;
  LEEWAY_ASSERT(++calls == 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace leeway
