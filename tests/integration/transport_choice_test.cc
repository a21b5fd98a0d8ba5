// Tests which transport real processes choose if they ask for one, or leave the choice to Leeway.
// Also tests ranks that disagree, or of which one lacks the transport. A test is skipped if the
// machine or build lacks its transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/rank_group.h"
#include "integration/same_outcomes.h"
#include "rendezvous/trials.h"

namespace leeway::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kChoicePatience(60);

std::vector<Facts> run(const Environment& environment,
                       const std::vector<Environment>& environment_of = {},
                       const char* scenario = "collectives",
                       const std::vector<std::vector<std::string>>& prefix_of = {}) {
  RankGroup group({.ranks = 4,
                   .scenario = {scenario, "elements_max=10000"},
                   .environment = environment,
                   .environment_of = environment_of,
                   .prefix_of = prefix_of});
  return group.finish(kChoicePatience);
}

void expect_choice(const std::vector<Facts>& all, const char* transport) {
  for (const Facts& facts : all) {
    EXPECT_EQ(facts.value("problems", Facts()), Facts::array()) << facts;
    EXPECT_EQ(facts.value("wrong", -1), 0);
    EXPECT_EQ(facts.value("transport", ""), transport);
  }
}

// Expects that every rank got the same error, and returns it.
std::string error_of_all(const std::vector<Facts>& all, const char* code) {
  for (const Facts& facts : all) {
    EXPECT_EQ(facts.value("/error/code"_json_pointer, ""), code) << facts;
    EXPECT_EQ(facts.value("error", Facts()), all[0].value("error", Facts()));
  }
  return all[0].value("/error/text"_json_pointer, "");
}

// Returns the reason why a single rank cannot use this transport, or an empty text if it can.
std::string obstacle(const std::string& transport) {
  Process alone({worker_path(), "join_only"}, {{"LEEWAY_TRANSPORT", transport}});
  const TimePoint until = Clock::now() + kChoicePatience;
  const auto all = facts_in(alone.read_all(until));
  EXPECT_EQ(alone.wait(until), 0);
  return all.empty() ? "no facts" : all[0].value("/error/text"_json_pointer, "");
}

// Fixture of tests that need UCX. UCX works on every machine, because ranks of one machine share
// memory.
class TransportChoiceUcx : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string text = obstacle("ucx");
    if (!text.empty()) GTEST_SKIP() << text;
  }
};

TEST(TransportChoice, UdpCarriesEverythingWhenAskedTo) {
  expect_choice(run({{"LEEWAY_TRANSPORT", "udp"}}), "udp");
}

TEST(TransportChoice, AutomaticTakesTheBestThatThisMachineHas) {
  const bool verbs = obstacle("verbs").empty();
  expect_choice(run({{"LEEWAY_TRANSPORT", "auto"}}), verbs ? "verbs" : "shm");
}

TEST(TransportChoice, MulticastThatIsAskedForIsUsed) {
  const Status usable = rendezvous::try_multicast(asio::ip::make_address("127.0.0.1"));
  if (!usable.ok()) GTEST_SKIP() << usable.c_str();
  const auto all = run({{"LEEWAY_MULTICAST", "1"}});
  expect_choice(all, "udp");
  for (const Facts& facts : all) EXPECT_GT(facts["counters"].value("group_sent", 0), 0);
  for (const Facts& facts : run({})) EXPECT_EQ(facts["counters"].value("group_sent", -1), 0);
}

TEST_F(TransportChoiceUcx, CarriesEverythingWhenAskedTo) {
  expect_choice(run({{"LEEWAY_TRANSPORT", "ucx"}}), "ucx");
}

TEST_F(TransportChoiceUcx, ComesToTheResultsAndReportsOfUdp) {
  const auto over = [](const char* transport) {
    Environment environment = kSameLosses;
    environment["LEEWAY_TRANSPORT"] = transport;
    return run(environment, {}, "outcomes");
  };
  expect_same_outcomes(over("udp"), over("ucx"));
}

TEST_F(TransportChoiceUcx, IsRightUnderLoad) {
  for (const char* scenario : {"in_flight", "two_groups", "threads"}) {
    for (const Facts& facts : run({{"LEEWAY_TRANSPORT", "ucx"}}, {}, scenario)) {
      EXPECT_EQ(facts.value("problems", Facts()), Facts::array()) << scenario << facts;
      EXPECT_EQ(facts.value("wrong", -1), 0) << scenario;
    }
  }
}

// Each rank has a /dev/shm of its own, so Leeway's shared memory does not connect ranks. UCX's
// System V memory would connect them, but the automatic choice does not take UCX.
TEST_F(TransportChoiceUcx, IsNotTakenUnasked) {
  if (run_command(private_memory()).exit_code != 0) GTEST_SKIP() << "may not mount";
  if (obstacle("verbs").empty()) GTEST_SKIP() << "this machine has RDMA";
  expect_choice(run({{"LEEWAY_TRANSPORT", "auto"}}, {}, "collectives",
                    std::vector<std::vector<std::string>>(4, private_memory())),
                "udp");
}

TEST_F(TransportChoiceUcx, AskedForAndLackedByOneRankIsAnErrorThatNamesTheRank) {
  const auto all =
      run({{"LEEWAY_TRANSPORT", "ucx"}}, {{}, {}, {{"UCX_TLS", "nothing"}}}, "join_only");
  EXPECT_THAT(error_of_all(all, "unsupported"), HasSubstr("rank 2 cannot use ucx: "));
}

TEST(TransportChoice, InjectedLossMeansUdp) {
  const auto all = run({{"LEEWAY_TRANSPORT", "auto"}, {"LEEWAY_FAULT", "loss=0.02"}});
  expect_choice(all, "udp");
  int lost = 0;
  for (const Facts& facts : all) lost += facts["counters"].value("injected_lost_data", 0);
  EXPECT_GT(lost, 0);
}

TEST(TransportChoice, DisagreementNamesBothSidesOnEveryRank) {
  const auto all =
      run({{"LEEWAY_TRANSPORT", "udp"}}, {{}, {}, {}, {{"LEEWAY_TRANSPORT", "auto"}}}, "join_only");
  EXPECT_THAT(error_of_all(all, "mismatch"),
              AllOf(HasSubstr("rank 3 asks for transport auto"), HasSubstr("rank 0 for udp")));
}

TEST(TransportChoice, DisagreementAboutMulticastNamesBothSidesOnEveryRank) {
  const auto all = run({}, {{}, {{"LEEWAY_MULTICAST", "1"}}}, "join_only");
  EXPECT_THAT(error_of_all(all, "mismatch"),
              AllOf(HasSubstr("rank 1 has multicast on"), HasSubstr("rank 0 off")));
}

TEST(TransportChoice, RdmaThatIsAskedForAndMissingIsAnErrorWithARemedy) {
  const std::string text = obstacle("verbs");
  if (text.empty()) GTEST_SKIP() << "this machine has RDMA";
  EXPECT_THAT(text, HasSubstr("rank 0 cannot use verbs: "));
  const auto all = run({{"LEEWAY_TRANSPORT", "verbs"}}, {}, "join_only");
  EXPECT_EQ(error_of_all(all, "unsupported"), text);
}

TEST(TransportChoice, InprocIsForOneProcess) {
  EXPECT_EQ(obstacle("inproc"), "");
  const auto all = run({{"LEEWAY_TRANSPORT", "inproc"}}, {}, "join_only");
  EXPECT_THAT(error_of_all(all, "invalid_argument"), HasSubstr("create_inproc()"));
}

}  // namespace
}  // namespace leeway::integration
