// Tests how a stopped or killed rank affects the others. No call may outlive its deadline by more
// than a timer tick, plus the time that a busy machine takes to wake a process.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/limits.h"
#include "integration/rank_group.h"
#include "integration/scheduling_delay.h"

namespace leeway::integration {
namespace {

constexpr int kKilledRank = 2;
constexpr double kDeadlineMs = 400.0;
constexpr double kTickMs = static_cast<double>(limits::kTickNs) / 1e6;

// Time that a busy machine may add. Test machines have two cores for four ranks and other work, so
// a process may wait for one time slice of the scheduler before it runs, and sometimes for many. So
// the median lateness may be a tick and one slice. The worst lateness may be 100 ms plus twice the
// longest delay of a thread of this test that only sleeps. On a quiet machine all calls return
// within a tick.
constexpr double kSliceMs = 4.0;
constexpr double kWorstDelayMs = 100.0;

constexpr std::chrono::seconds kDeadlinePatience(60);

RankSetup rounds_of(const std::string& delivery, std::vector<std::string> more,
                    const Environment& environment) {
  RankSetup setup{.scenario = {"endless_rounds", "elements=2097152", "watched=2",
                               "deadline_ms=" + std::to_string(static_cast<int>(kDeadlineMs)),
                               "delivery=" + delivery},
                  .environment = environment};
  setup.scenario.insert(setup.scenario.end(), more.begin(), more.end());
  return setup;
}

bool overdue(const Facts& call) {
  return call["cut"] == true || call["ok"] == false;
}

// Returns true if the call failed, or if its deadline cut it while packets of the stopped rank were
// missing. A cut call that has all packets of that rank does not count. It waited for another rank,
// as may happen on a busy machine.
bool waited_for_victim(const Facts& call) {
  return call["ok"] == false || (call["cut"] == true && call["arrived"] < call["expected"]);
}

// Returns the lateness of all survivors' calls that waited for the victim, in ms and sorted.
// Lateness is the time from the deadline to the call's return, measured by `clock`.
std::vector<double> lateness(const std::vector<Facts>& all, const char* clock) {
  std::vector<double> late;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (rank == kKilledRank || !all[rank].is_object()) continue;
    for (const Facts& call : all[rank]["calls"]) {
      if (waited_for_victim(call)) late.push_back(call[clock].get<double>() - kDeadlineMs);
    }
  }
  std::sort(late.begin(), late.end());
  return late;
}

void expect_in_time(const std::vector<Facts>& all, const char* clock, const char* what,
                    double machine_delay_ms) {
  const std::vector<double> late = lateness(all, clock);
  ASSERT_GE(late.size(), 3u);
  const double median = late[late.size() / 2];
  std::printf(
      "%s, %s: %zu calls, beyond the deadline of %.0f ms: least %.3f, median %.3f, most %.3f ms; "
      "the machine "
      "kept a sleeper waiting for %.1f ms\n",
      what, clock, late.size(), kDeadlineMs, late.front(), median, late.back(), machine_delay_ms);
  EXPECT_LE(median, kTickMs + kSliceMs);
  EXPECT_LE(late.back(), kTickMs + kWorstDelayMs + 2 * machine_delay_ms);
}

void expect_each_survivor(const std::vector<Facts>& all, auto&& expectation) {
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (rank == kKilledRank) continue;
    ASSERT_TRUE(all[rank].is_object()) << "rank " << rank;
    expectation(rank, all[rank]);
  }
}

// Expects that lossy calls succeeded with the packets that had arrived. Their reports must say that
// the deadline cut them, and whose packets were missing.
void expect_lossy_cuts(const std::vector<Facts>& all) {
  expect_each_survivor(all, [](int rank, const Facts& facts) {
    EXPECT_EQ(facts["first_error"]["code"], "ok")
        << "rank " << rank << ": " << facts["first_error"];
    const Facts& calls = facts["calls"];
    EXPECT_GE(std::count_if(calls.begin(), calls.end(), waited_for_victim), 3) << "rank " << rank;
  });
}

void expect_exact_errors(const std::vector<Facts>& all) {
  expect_each_survivor(all, [](int rank, const Facts& facts) {
    EXPECT_EQ(facts["first_error"]["code"], "deadline_exceeded") << facts["first_error"];
    const std::string text = facts["first_error"]["text"];
    EXPECT_NE(text.find("rank " + std::to_string(rank) + ":"), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2", 7), std::string::npos) << text;
    // The rank that gives up first tells the others, which then report its message instead of a
    // time-out of their own.
    const bool timed_out = text.find("Timed out (deadline 400 ms)") != std::string::npos;
    const bool told =
        text.find("gave it up at its own deadline, waiting for rank 2") != std::string::npos;
    EXPECT_TRUE(timed_out || told) << text;
    std::printf("  %s\n", text.c_str());
  });
}

// Stops rank 2 during its rounds. Continues it after the deadline has cut three calls of each other
// rank.
std::vector<Facts> stop_and_continue(const std::string& delivery,
                                     const Environment& environment = {}) {
  RankGroup group(rounds_of(delivery, {"rounds=60", "cuts=3"}, environment));
  if (!group.await_mark("looping")) return {};
  group[kKilledRank].signal(SIGSTOP);
  const TimePoint until = Clock::now() + std::chrono::seconds(20);
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == kKilledRank) continue;
    EXPECT_TRUE(group[rank].read_line(until)) << "rank " << rank << " was never cut";
  }
  group[kKilledRank].signal(SIGCONT);
  return group.finish(kDeadlinePatience);
}

std::vector<Facts> kill_one(const std::string& delivery, const Environment& environment = {}) {
  RankGroup group(rounds_of(delivery, {"rounds=1000", "cuts=3", "leave=1"}, environment));
  if (!group.await_mark("looping")) return {};
  group[kKilledRank].signal(SIGKILL);
  return group.finish(kDeadlinePatience, kKilledRank);
}

// Expects that the group works again after SIGCONT: most of the last calls of all ranks must end
// before the deadline. A few may not, if the machine itself was busy.
void expect_recovery(const std::vector<Facts>& all) {
  constexpr std::ptrdiff_t kLast = 20;
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    const Facts& calls = facts["calls"];
    ASSERT_GE(calls.size(), 2u * kLast);
    const auto in_time = kLast - std::count_if(calls.end() - kLast, calls.end(), overdue);
    std::printf("rank %d: %zu calls, %d ended by the deadline or an error, of the last %d: %d\n",
                facts["rank"].get<int>(), calls.size(),
                static_cast<int>(std::count_if(calls.begin(), calls.end(), overdue)),
                static_cast<int>(kLast), static_cast<int>(kLast - in_time));
    EXPECT_GT(in_time, kLast / 2) << "rank " << facts["rank"];
  }
}

TEST(Deadline, BestEffortReturnsInTimeWhenARankIsStopped) {
  const SchedulingDelay delay;
  const auto all = stop_and_continue("best_effort");
  ASSERT_EQ(all.size(), 4u);
  expect_lossy_cuts(all);
  expect_in_time(all, "total_ms", "best_effort, stopped", delay.longest_ms());
  expect_in_time(all, "wall_ms", "best_effort, stopped", delay.longest_ms());
  expect_recovery(all);
}

TEST(Deadline, BoundedReturnsInTimeWhenARankIsStopped) {
  const SchedulingDelay delay;
  const auto all = stop_and_continue("bounded");
  ASSERT_EQ(all.size(), 4u);
  expect_lossy_cuts(all);
  expect_in_time(all, "total_ms", "bounded, stopped", delay.longest_ms());
  expect_in_time(all, "wall_ms", "bounded, stopped", delay.longest_ms());
  expect_recovery(all);
}

TEST(Deadline, ExactNamesTheStoppedRank) {
  const SchedulingDelay delay;
  const auto all = stop_and_continue("exact");
  ASSERT_EQ(all.size(), 4u);
  expect_exact_errors(all);
  expect_in_time(all, "wall_ms", "exact, stopped", delay.longest_ms());
  expect_recovery(all);
}

// With shared memory, the ring to the stopped rank becomes full, because nobody empties it. Trains
// to other ranks must not wait for room in that ring.
TEST(Deadline, BestEffortReturnsInTimeWhenARankOfTheSameMemoryIsStopped) {
  const SchedulingDelay delay;
  const auto all = stop_and_continue("best_effort", {{"LEEWAY_TRANSPORT", "shm"}});
  ASSERT_EQ(all.size(), 4u);
  expect_lossy_cuts(all);
  expect_in_time(all, "wall_ms", "best_effort, memory, stopped", delay.longest_ms());
  expect_recovery(all);
}

TEST(Deadline, ExactNamesTheKilledRankOfTheSameMemory) {
  const SchedulingDelay delay;
  const auto all = kill_one("exact", {{"LEEWAY_TRANSPORT", "shm"}});
  ASSERT_EQ(all.size(), 4u);
  expect_exact_errors(all);
  expect_in_time(all, "wall_ms", "exact, memory, killed", delay.longest_ms());
}

TEST(Deadline, BestEffortReturnsInTimeWhenARankIsKilled) {
  const SchedulingDelay delay;
  const auto all = kill_one("best_effort");
  ASSERT_EQ(all.size(), 4u);
  expect_lossy_cuts(all);
  expect_in_time(all, "total_ms", "best_effort, killed", delay.longest_ms());
  expect_in_time(all, "wall_ms", "best_effort, killed", delay.longest_ms());
}

TEST(Deadline, ExactNamesTheKilledRank) {
  const SchedulingDelay delay;
  const auto all = kill_one("exact");
  ASSERT_EQ(all.size(), 4u);
  expect_exact_errors(all);
  expect_in_time(all, "wall_ms", "exact, killed", delay.longest_ms());
}

}  // namespace
}  // namespace leeway::integration
