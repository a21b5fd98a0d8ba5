#include "run/fault_schedule.h"

#include <gtest/gtest.h>

#include "network/network.h"
#include "scenario/parse.h"

namespace leeway::sim {
namespace {

FaultSchedule schedule_of(const char* text) {
  const auto scenario = scenario::parse_text(text, "test.txtpb");
  EXPECT_TRUE(scenario.ok()) << scenario.status().text();
  auto schedule = FaultSchedule::make(*scenario);
  EXPECT_TRUE(schedule.ok());
  return std::move(*schedule);
}

std::vector<Event> all_of(EventQueue& queue) {
  std::vector<Event> events;
  Event event;
  while (queue.pop(event)) events.push_back(event);
  return events;
}

TEST(FaultSchedule, AFaultWaitsForItsRankAndRoundAndThenForATime) {
  FaultSchedule schedule =
      schedule_of("ranks: 3 pause { rank: 1 from_round: 2 after_ms: 3 for_ms: 4 }");
  EventQueue queue;
  schedule.on_submit({0}, 1, 1, queue);
  schedule.on_submit({0}, 2, 2, queue);
  EXPECT_TRUE(queue.empty());
  schedule.on_submit({0}, 1, 2, queue);
  const auto events = all_of(queue);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].time_ns, 3'000'000);
  EXPECT_EQ(events[0].argument, 1u);
  EXPECT_EQ(events[1].time_ns, 7'000'000);
  EXPECT_EQ(events[1].argument, 0u);
  EXPECT_EQ(events[1].kind, static_cast<std::uint32_t>(EventKind::fault));
  EXPECT_EQ(schedule.fault(events[0].target).rank, 1u);
}

TEST(FaultSchedule, AFaultBeginsOnce) {
  FaultSchedule schedule = schedule_of("ranks: 2 crash { rank: 0 }");
  EventQueue queue;
  for (std::uint32_t round = 0; round < 5; ++round) schedule.on_submit({0}, 0, round, queue);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(FaultSchedule, APartitionHasTheDirectionsOfItsSelectors) {
  const FaultSchedule both =
      schedule_of("ranks: 3 partition { between: \"0\" and: \"1-2\" for_ms: 1 }");
  using Direction = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(both.fault(0).directions, (std::vector<Direction>{{0, 1}, {0, 2}, {1, 0}, {2, 0}}));
  const FaultSchedule one = schedule_of("ranks: 3 partition { from: \"0\" }");
  EXPECT_EQ(one.fault(0).directions, (std::vector<Direction>{{0, 1}, {0, 2}}));
}

}  // namespace
}  // namespace leeway::sim
