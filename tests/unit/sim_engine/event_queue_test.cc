#include "engine/event_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/random_stream.h"
#include "support/allocations.h"

namespace leeway::sim {
namespace {

// Gives the same events to an EventQueue and to an ordered map, and compares all answers.
class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : random(seed, 0, Purpose::workload) {}

  void push_after(std::int64_t delay_ns) {
    const Event event{queue.now().ns + delay_ns, pushed_++, random.u32(), random.u32(),
                      random.u64()};
    queue.push({event.time_ns}, event.target, event.kind, event.argument);
    expected_.emplace(std::pair(event.time_ns, event.sequence), event);
  }

  // Returns false after the first difference, so that a loop does not report millions of them.
  bool pop_agrees() {
    if (!view_agrees()) return false;
    const Event& expected = expected_.begin()->second;
    Event event;
    const bool same = queue.pop(event) && event.time_ns == expected.time_ns &&
                      event.sequence == expected.sequence && event.target == expected.target &&
                      event.kind == expected.kind && event.argument == expected.argument &&
                      queue.now() == Instant{expected.time_ns};
    EXPECT_TRUE(same) << "popped (" << event.time_ns << ", " << event.sequence << "), expected ("
                      << expected.time_ns << ", " << expected.sequence << ")";
    expected_.erase(expected_.begin());
    return same && queue.size() == expected_.size();
  }

  void drain() {
    while (!expected_.empty()) ASSERT_TRUE(pop_agrees());
    Event event;
    EXPECT_FALSE(queue.pop(event));
  }

  EventQueue queue;
  RandomStream random;
  std::uint64_t events_seen_ahead = 0;

 private:
  // Returns true if look_ahead() sees the next events, in their order.
  bool view_agrees() {
    auto next = expected_.begin();
    bool same = true;
    queue.look_ahead(3, [&](int ahead, const Event& event) {
      same =
          same && ahead < 3 && next != expected_.end() && event.sequence == next->second.sequence;
      ++next;
      ++events_seen_ahead;
    });
    EXPECT_TRUE(same) << "ahead of " << expected_.begin()->second.time_ns;
    return same;
  }

  std::uint64_t pushed_ = 0;
  std::map<std::pair<std::int64_t, std::uint64_t>, Event> expected_;
};

using Delay = std::function<std::int64_t(RandomStream&)>;

// Fills up to `pending` events, then pushes one for each popped, then drains.
void hold(std::uint64_t seed, int pending, int steps, const Delay& delay) {
  Comparison run(seed);
  for (int i = 0; i < pending; ++i) run.push_after(delay(run.random));
  for (int i = 0; i < steps; ++i) {
    ASSERT_TRUE(run.pop_agrees());
    run.push_after(delay(run.random));
  }
  run.drain();
}

// Draws a delay of up to 2^48 ns, so that the sum of thousands stays within the clock's range.
std::int64_t of_any_magnitude(RandomStream& random) {
  return static_cast<std::int64_t>(random.u64() >> (16 + random.below(48)));
}

TEST(EventQueuePop, FollowsAReferenceForDelaysOfAnyMagnitude) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) hold(seed, 500, 5'000, of_any_magnitude);
}

TEST(EventQueuePop, FollowsAReferenceThroughManyTies) {
  hold(5, 1'000, 20'000, [](RandomStream& r) { return static_cast<std::int64_t>(r.below(4)); });
  hold(6, 1'000, 20'000,
       [](RandomStream& r) { return static_cast<std::int64_t>(r.below(5) * 1'000'000); });
}

TEST(EventQueueLookAhead, SeesWhatComesSoon) {
  Comparison run(6);
  for (int i = 0; i < 3'000; ++i) run.push_after(static_cast<std::int64_t>(run.random.below(300)));
  run.drain();
  EXPECT_GT(run.events_seen_ahead, 3u * 2'900);  // all but the events beyond the wheel's end
}

TEST(EventQueuePop, FollowsAReferenceAtTheEdgesOfSlotsAndWheels) {
  hold(7, 300, 20'000, [](RandomStream& r) {
    const std::int64_t edge = std::int64_t{1} << (4 + r.below(40));
    return edge - 1 + static_cast<std::int64_t>(r.below(3));
  });
}

TEST(EventQueuePop, FollowsAReferenceWithAHundredThousandPending) {
  hold(8, 100'000, 50'000,
       [](RandomStream& r) { return static_cast<std::int64_t>(r.below(1'000'000)); });
}

TEST(EventQueuePop, FollowsAReferenceWhenItFillsAndEmptiesByTurns) {
  Comparison run(9);
  for (int turn = 0; turn < 200; ++turn) {
    const std::uint64_t pushes = run.random.below(100);
    for (std::uint64_t i = 0; i < pushes; ++i) run.push_after(of_any_magnitude(run.random) >> 8);
    for (std::uint64_t i = run.random.below(100); i > 0 && !run.queue.empty(); --i) {
      ASSERT_TRUE(run.pop_agrees());
    }
  }
  run.drain();
}

TEST(EventQueuePop, ServesWhatIsPushedAtTheCurrentInstantAfterItsElders) {
  EventQueue queue;
  queue.push({100}, 0, 0, 0);
  queue.push({100}, 0, 0, 1);
  Event event;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(queue.pop(event));
    ASSERT_EQ(event.argument, i);
    queue.push({100}, 0, 0, i + 2);
  }
  EXPECT_EQ(queue.now(), Instant{100});
}

TEST(EventQueuePop, CrossesLongIdleGaps) {
  Comparison run(10);
  for (int i = 0; i < 60; ++i) {
    run.push_after(std::int64_t{1} << i);
    ASSERT_TRUE(run.pop_agrees());
    run.push_after(3);
    ASSERT_TRUE(run.pop_agrees());
  }
}

TEST(EventQueuePop, ReachesTheEndOfTime) {
  EventQueue queue;
  const std::int64_t end = INT64_MAX;
  queue.push({end}, 3, 0, 0);
  queue.push({Instant::infinite_future()}, 2, 0, 0);
  queue.push({end - 1}, 1, 0, 0);
  Event event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.target, 2u);
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.target, 1u);
  queue.push({end}, 4, 0, 0);
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.target, 3u);
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.target, 4u);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueuePop, LeavesEverythingAloneWhenNothingIsPending) {
  EventQueue queue;
  Event event{7, 8, 9, 10, 11};
  EXPECT_FALSE(queue.pop(event));
  EXPECT_EQ(event.time_ns, 7);
  EXPECT_EQ(event.argument, 11u);
  EXPECT_EQ(queue.now(), Instant{0});
}

// A caller with a real clock looks now and then, and pushes events before those already pending.
TEST(EventQueuePopUntil, GivesWhatIsDueAndLeavesTheTimeBetweenOpen) {
  EventQueue queue;
  RandomStream random(12, 0, Purpose::workload);
  std::multimap<std::int64_t, std::uint64_t> expected;
  std::int64_t now_ns = 0;
  for (int look = 0; look < 20'000; ++look) {
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      const std::int64_t time_ns = now_ns + (std::int64_t{1} << random.below(34));
      expected.emplace(time_ns, random.u64());
      queue.push({time_ns}, 0, 0, std::prev(expected.upper_bound(time_ns))->second);
    }
    now_ns += static_cast<std::int64_t>(random.below(1u << random.below(30)));
    for (Event event; queue.pop_until({now_ns}, event); expected.erase(expected.begin())) {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(event.time_ns, expected.begin()->first);
      ASSERT_EQ(event.argument, expected.begin()->second);
    }
    ASSERT_TRUE(expected.empty() || expected.begin()->first > now_ns);
    ASSERT_LE(queue.now(), Instant{now_ns});
    ASSERT_GT(queue.next_not_before(), Instant{now_ns} - Duration{1});
  }
}

TEST(EventQueuePopUntil, TellsWhenALoneEventIsDue) {
  EventQueue queue;
  EXPECT_EQ(queue.next_not_before(), Instant::infinite_future());
  queue.push({25'000'000}, 0, 0, 0);
  EXPECT_EQ(queue.next_not_before(), Instant{25'000'000});
  Event event;
  EXPECT_FALSE(queue.pop_until({24'999'999}, event));
  queue.push({7}, 0, 0, 0);
  EXPECT_EQ(queue.next_not_before(), Instant{7});
  EXPECT_TRUE(queue.pop_until({25'000'000}, event));
  EXPECT_EQ(event.time_ns, 7);
  EXPECT_TRUE(queue.pop_until({25'000'000}, event));
  EXPECT_FALSE(queue.pop_until({25'000'000}, event));
}

TEST(EventQueuePush, NumbersEventsInTheOrderOfThePushes) {
  EventQueue queue;
  queue.push({20}, 0, 0, 0);
  queue.push({10}, 0, 0, 0);
  EXPECT_EQ(queue.size(), 2u);
  Event event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.sequence, 1u);
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.sequence, 0u);
}

TEST(EventQueuePushDeathTest, RefusesThePast) {
  EventQueue queue;
  queue.push({10}, 0, 0, 0);
  Event event;
  ASSERT_TRUE(queue.pop(event));
  queue.push({10}, 0, 0, 0);
  EXPECT_DEATH(queue.push({9}, 0, 0, 0), "contract broken");
}

TEST(EventQueuePush, AllocatesNothingOnceThePendingEventsHadRoom) {
  EventQueue queue;
  RandomStream random(11, 0, Purpose::workload);
  const auto replace = [&](int times) {
    Event event;
    for (int i = 0; i < times; ++i) {
      queue.pop(event);
      queue.push({event.time_ns + static_cast<std::int64_t>(random.below(100'000))}, 0, 0, 0);
    }
  };
  for (int i = 0; i < 1'000; ++i) queue.push({static_cast<std::int64_t>(i) * 100}, 0, 0, 0);
  replace(50'000);
  const std::size_t before = allocations_so_far();
  replace(50'000);
  EXPECT_EQ(allocations_so_far(), before);
}

}  // namespace
}  // namespace leeway::sim
