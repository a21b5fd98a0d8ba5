// Seeds on which the search for faults once failed.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/seeds.h"
#include "swarm/draw.h"
#include "swarm/verdict.h"

namespace leeway::sim::swarm {
namespace {

TEST(Regressions, SeedsThatOnceFailedPass) {
  std::ifstream file(LEEWAY_REGRESSIONS);
  ASSERT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::uint64_t seed = std::stoull(line);
    const Verdict verdict = judge(draw_scenario(seed), seed, {.twice = leeway::testing::kTakesAll});
    EXPECT_FALSE(verdict.failure) << line << "\n  " << verdict.failure->check << ": "
                                  << verdict.failure->text;
  }
}

}  // namespace
}  // namespace leeway::sim::swarm
