// Heavy load without injected loss: the library itself must not cause loss.
#include <gtest/gtest.h>

#include <cstdio>

#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

TEST(Load, HundredLargeAllReducesLoseNothing) {
  RankGroup group({.scenario = {"repeat", "rounds=100", "elements=4194304", "delivery=best_effort",
                                "deadline_ms=30000"}});
  for (const Facts& facts : group.finish(std::chrono::seconds(120))) {
    ASSERT_TRUE(facts.is_object());
    ASSERT_FALSE(facts.contains("error")) << facts;
    EXPECT_EQ(facts["calls"], 100u);
    EXPECT_EQ(facts["lossy_calls"], 0u) << facts;
    EXPECT_EQ(facts["lost_packets"], 0u) << facts;
    EXPECT_EQ(facts["wrong"], 0u);
    EXPECT_EQ(facts["counters"]["kernel_drops"], 0u);
    std::printf("rank %d: 100 x 16 MiB, lost packets %d, median %.1f ms, longest %.1f ms\n",
                facts["rank"].get<int>(), facts["lost_packets"].get<int>(),
                facts["median_ms"].get<double>(), facts["longest_ms"].get<double>());
  }
}

}  // namespace
}  // namespace leeway::integration
