#include "engine/probability.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(ProbabilityOf, IsExactForNumbersWithoutBitsBelowTheUnit) {
  EXPECT_EQ(Probability::of(0.5).f63(), std::uint64_t{1} << 62);
  EXPECT_EQ(Probability::of(0x1p-63).f63(), 1u);
  EXPECT_EQ(Probability::of(0.0), Probability::never());
  EXPECT_EQ(Probability::of(1.0), Probability::always());
}

TEST(ProbabilityComplement, AddsUpToOne) {
  const Probability p = Probability::of(0.3);
  EXPECT_EQ(p.f63() + p.complement().f63(), kOneF63);
  EXPECT_EQ(Probability::always().complement(), Probability::never());
}

TEST(ProbabilityDeathTest, RefusesWhatIsNone) {
  EXPECT_DEATH(Probability::of(1.5), "contract broken");
  EXPECT_DEATH(Probability::of(-0.1), "contract broken");
  EXPECT_DEATH(Probability::of_f63(kOneF63 + 1), "contract broken");
}

}  // namespace
}  // namespace leeway::sim
