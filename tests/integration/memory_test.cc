// Tests ranks of one host over shared memory, with real processes and the real /dev/shm. Ranks that
// cannot share memory must use UDP. All results must be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "integration/exact_expectation.h"
#include "integration/rank_group.h"
#include "integration/same_outcomes.h"

namespace leeway::integration {
namespace {

using ::testing::HasSubstr;
using Prefixes = std::vector<std::vector<std::string>>;

constexpr std::chrono::seconds kMemoryPatience(60);

std::vector<Facts> run(const std::vector<std::string>& scenario, const Environment& environment,
                       const Prefixes& prefix_of = {}) {
  RankGroup group({.scenario = scenario, .environment = environment, .prefix_of = prefix_of});
  return group.finish(kMemoryPatience);
}

Environment over(const char* transport) {
  return {{"LEEWAY_TRANSPORT", transport}};
}

std::vector<std::string> transports_of(const std::vector<Facts>& all) {
  std::vector<std::string> names;
  for (const Facts& facts : all) names.push_back(facts.value("transport", ""));
  return names;
}

int segments_left() {
  int left = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    left += entry.path().filename().string().starts_with("leeway-");
  return left;
}

bool may(const std::vector<std::string>& prefix) {
  std::vector<std::string> words = prefix;
  words.emplace_back("true");
  return run_command(words).exit_code == 0;
}

TEST(Memory, CarriesEveryOperationAndLeavesNothing) {
  const int before = segments_left();
  for (const Facts& facts : run({"collectives"}, over("shm"))) {
    expect_no_problem(facts);
    EXPECT_EQ(facts.value("transport", ""), "shm");
    EXPECT_EQ(facts.value("datagram_bytes", 0), 32384);
    EXPECT_GT(facts["counters"].value("near_calls", 0), 100);
    EXPECT_GT(facts["counters"].value("shm_datagrams_sent", 0), 10);
    EXPECT_EQ(facts["counters"].value("shm_broken", -1), 0);
    EXPECT_EQ(facts["counters"].value("shm_stalled", -1), 0);
  }
  EXPECT_EQ(segments_left(), before);
}

TEST(Memory, IsRightUnderLoad) {
  for (const char* scenario : {"in_flight", "two_groups", "threads"}) {
    for (const Facts& facts : run({scenario, "elements_max=10000"}, over("mixed"))) {
      EXPECT_EQ(facts.value("problems", Facts()), Facts::array()) << scenario << facts;
      EXPECT_EQ(facts.value("wrong", -1), 0) << scenario;
    }
  }
}

TEST(Memory, ComesToTheResultsAndReportsOfUdpUnderInjectedFaults) {
  const auto outcomes = [](const char* transport) {
    Environment environment = kSameLosses;
    environment["LEEWAY_TRANSPORT"] = transport;
    return run({"outcomes", "elements_max=10000"}, environment);
  };
  expect_same_outcomes(outcomes("udp"), outcomes("mixed"));  // shm makes a vote, which is a call
}

TEST(Memory, RanksOfSeveralMountsUseUdpBetweenThem) {
  if (!may(private_memory())) GTEST_SKIP() << "may not mount";
  const auto all = run({"collectives", "elements_max=16384"}, over("mixed"),
                       {{}, {}, private_memory(), private_memory()});
  for (const Facts& facts : all) expect_no_problem(facts);
  EXPECT_EQ(transports_of(all), (std::vector<std::string>{"mixed", "mixed", "udp", "udp"}));
  EXPECT_EQ(all[0].value("datagram_bytes", 0), 32384) << "loopback carries them as memory does";
}

TEST(Memory, RanksThatFindItFullUseUdp) {
  if (!may(private_memory())) GTEST_SKIP() << "may not mount";
  const auto all =
      run({"collectives", "elements_max=16384"}, over("auto"), Prefixes(4, private_memory("128k")));
  for (const Facts& facts : all) {
    expect_no_problem(facts);
    EXPECT_NE(facts.value("transport", ""), "shm");
  }
}

TEST(Memory, RanksOfAnotherUserUseUdp) {
  const std::vector<std::string> other = {"setpriv", "--reuid=12345", "--regid=12345",
                                          "--clear-groups"};
  if (!may(other)) GTEST_SKIP() << "may not change its user";
  std::vector<std::string> reaches = other;
  reaches.insert(reaches.end(), {"test", "-x", worker_path()});
  if (run_command(reaches).exit_code != 0) GTEST_SKIP() << "another user cannot reach the worker";
  const auto all = run({"collectives", "elements_max=16384"}, over("mixed"), {{}, {}, {}, other});
  for (const Facts& facts : all) expect_no_problem(facts);
  EXPECT_EQ(transports_of(all), (std::vector<std::string>{"mixed", "mixed", "mixed", "udp"}));
}

TEST(Memory, ThatIsAskedForByNameAndLackingIsEverybodysError) {
  if (!may(private_memory())) GTEST_SKIP() << "may not mount";
  for (const Facts& facts : run({"join_only"}, over("shm"), {{}, {}, {}, private_memory()})) {
    EXPECT_EQ(facts.value("/error/code"_json_pointer, ""), "unsupported") << facts;
    EXPECT_THAT(facts.value("/error/text"_json_pointer, ""), HasSubstr("cannot use shm"));
  }
}

// After the rings break, ranks use UDP. They had agreed on datagrams of 32 KiB, which are too long
// for UDP here. So large calls may fail, but no result may be wrong, and small calls must succeed.
TEST(Memory, ThatARankScribblesIntoSpoilsNoResult) {
  constexpr int kScribbler = 2;
  const auto all = run({"scribbled_memory", "scribbler=2"}, over("shm"));
  for (const Facts& facts : all) {
    const bool scribbles = facts.value("rank", -1) == kScribbler;
    EXPECT_EQ(facts["before"].value("right", 0), 2) << facts;
    EXPECT_EQ(facts.value("scribbled", 0), scribbles ? 3 : 0) << facts;
    EXPECT_EQ(facts["counters"].value("shm_broken", 0), scribbles ? 3 : 1) << facts;
    EXPECT_EQ(facts["large"].value("wrong", -1), 0) << facts;
    for (const Facts& error : facts["large"]["failed"])
      EXPECT_THAT(error.value("text", ""), HasSubstr("rank")) << facts;
    EXPECT_EQ(facts["small"].value("right", 0), 5) << facts;
  }
}

TEST(Memory, OfAKilledRankEndsExactCallsWithinThePeerTimeout) {
  constexpr int kVictim = 2;
  RankGroup group({.scenario = {"endless_rounds", "elements=65536", "rounds=1000000", "cuts=1",
                                "leave=1", "watched=2", "deadline_ms=60000", "delivery=exact"},
                   .environment = over("shm")});
  ASSERT_TRUE(group.await_mark("looping"));
  group[kVictim].signal(SIGKILL);
  const auto all = group.finish(kMemoryPatience, kVictim);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (rank == kVictim) continue;
    const Facts& error = all[rank]["first_error"];
    EXPECT_EQ(error.value("code", ""), "peer_lost") << error;
    EXPECT_THAT(error.value("text", ""), HasSubstr("rank")) << error;
    EXPECT_LE(all[rank]["calls"].back().value("wall_ms", 1e9), 3500.0);
  }
}

TEST(Memory, OfKilledRanksLeavesNothing) {
  const int before = segments_left();
  RankGroup group({.scenario = {"endless_rounds", "elements=65536", "rounds=100000", "cuts=1000",
                                "watched=2", "deadline_ms=400", "delivery=best_effort"},
                   .environment = over("shm")});
  ASSERT_TRUE(group.await_mark("looping"));
  for (int rank = 0; rank < group.size(); ++rank) group[rank].signal(SIGKILL);
  const TimePoint until = Clock::now() + std::chrono::seconds(20);
  for (int rank = 0; rank < group.size(); ++rank) EXPECT_EQ(group[rank].wait(until), 128 + SIGKILL);
  EXPECT_EQ(segments_left(), before);
}

}  // namespace
}  // namespace leeway::integration
