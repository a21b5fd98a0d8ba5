#include "protocol/timer_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace leeway::protocol {
namespace {

std::vector<std::size_t> due(TimerHeap& timers, std::int64_t now) {
  std::vector<std::size_t> taken;
  while (const auto timer = timers.take_due(Instant{now})) taken.push_back(*timer);
  return taken;
}

TEST(TimerHeapTake, GivesWhatIsDueEarliestFirst) {
  TimerHeap timers(5);
  EXPECT_EQ(timers.next(), Instant::infinite_future());
  timers.arm(3, Instant{30});
  timers.arm(1, Instant{10});
  timers.arm(4, Instant{20});
  timers.arm(0, Instant{20});
  EXPECT_EQ(timers.next(), Instant{10});
  EXPECT_EQ(due(timers, 9), std::vector<std::size_t>{});
  EXPECT_EQ(due(timers, 20), (std::vector<std::size_t>{1, 0, 4}));
  EXPECT_EQ(timers.next(), Instant{30});
}

TEST(TimerHeapArm, MakesATimerEarlierAndNeverLater) {
  TimerHeap timers(2);
  timers.arm(0, Instant{50});
  timers.arm(0, Instant{80});
  EXPECT_EQ(timers.next(), Instant{50});
  timers.arm(0, Instant{20});
  EXPECT_EQ(due(timers, 100), std::vector<std::size_t>{0}) << "once";
  timers.arm(0, Instant{80});
  EXPECT_EQ(timers.next(), Instant{80});
}

TEST(TimerHeapArm, AtNoTimeArmsNothing) {
  TimerHeap timers(2);
  timers.arm(1, Instant::infinite_future());
  EXPECT_EQ(due(timers, INT64_MAX / 2), std::vector<std::size_t>{});
}

TEST(TimerHeapDisarm, TakesOutThatTimerAlone) {
  TimerHeap timers(4);
  for (std::size_t timer = 0; timer < 4; ++timer)
    timers.arm(timer, Instant{10 * static_cast<std::int64_t>(timer + 1)});
  timers.disarm(0);
  EXPECT_EQ(timers.next(), Instant{20});
  timers.disarm(3);
  timers.disarm(3);
  EXPECT_EQ(due(timers, 100), (std::vector<std::size_t>{1, 2}));
  timers.arm(0, Instant{500});
  EXPECT_EQ(timers.next(), Instant{500}) << "what it was armed for before is forgotten";
}

TEST(TimerHeap, DoesWhatASortedListWouldDo) {
  constexpr std::size_t kTimers = 100;
  TimerHeap timers(kTimers);
  std::map<std::size_t, std::int64_t> armed;
  std::mt19937 random(1);
  for (std::int64_t now = 0; now < 20'000; ++now) {
    const std::size_t timer = random() % kTimers;
    const auto at = now + 1 + static_cast<std::int64_t>(random() % 300);
    timers.arm(timer, Instant{at});
    const auto [it, fresh] = armed.emplace(timer, at);
    if (!fresh) it->second = std::min(it->second, at);
    if (random() % 3 == 0) {
      const std::size_t other = random() % kTimers;
      timers.disarm(other);
      armed.erase(other);
    }
    std::vector<std::pair<std::int64_t, std::size_t>> expected;
    for (const auto& [id, when] : armed) {
      if (when <= now) expected.emplace_back(when, id);
    }
    std::sort(expected.begin(), expected.end());
    for (const auto& [when, id] : expected) {
      ASSERT_EQ(timers.take_due(Instant{now}), id);
      armed.erase(id);
    }
    ASSERT_EQ(timers.take_due(Instant{now}), std::nullopt);
  }
}

}  // namespace
}  // namespace leeway::protocol
