// Tests hosts in network namespaces, with real packets and loss in the kernel. Lossy and exact
// results must be right. Ranks behind narrower links or a router must join without special
// settings.
#include <gtest/gtest.h>

#include <cstdio>

#include "integration/exact_expectation.h"
#include "integration/lossy_expectation.h"
#include "integration/network_lab.h"
#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

constexpr std::chrono::seconds kNamespacesPatience(60);
constexpr double kLoss = 0.05;

class Namespaces : public testing::Test {
 protected:
  bool build(const LabPlan& plan) {
    std::string obstacle;
    lab_ = NetworkLab::create(plan, obstacle);
    if (lab_ == nullptr) skip_reason_ = obstacle;
    return lab_ != nullptr;
  }

  std::vector<Facts> run(const std::vector<std::string>& scenario,
                         const Environment& environment = {}) {
    RankSetup setup{.scenario = scenario,
                    .environment = environment,
                    .rendezvous = lab_->address_of(0) + ":29400"};
    for (int host = 0; host < setup.ranks; ++host) setup.prefix_of.push_back(lab_->prefix_of(host));
    RankGroup group(setup);
    return group.finish(kNamespacesPatience);
  }

  std::unique_ptr<NetworkLab> lab_;
  std::string skip_reason_;
};

void expect_exact(const std::vector<Facts>& all) {
  for (const Facts& facts : all) expect_no_problem(facts);
}

TEST_F(Namespaces, EveryOperationIsExactWhenTheKernelDropsDatagrams) {
  if (!build({.loss_permille = 50})) GTEST_SKIP() << skip_reason_;
  const auto all = run({"collectives"});
  expect_exact(all);
  const auto drops = lab_->drops();
  std::printf(
      "exact, 4 hosts: kernel dropped %llu of %llu datagrams; first-pass loss seen by rank 0: "
      "%.4f\n",
      static_cast<unsigned long long>(drops.dropped), static_cast<unsigned long long>(drops.seen),
      all[0].value("loss_first_pass", -1.0));
  EXPECT_NEAR(static_cast<double>(drops.dropped) / static_cast<double>(drops.seen), kLoss, 0.015);
}

TEST_F(Namespaces, LossyAveragesHaveTheErrorOfTheKernelsLoss) {
  if (!build({.loss_permille = 50})) GTEST_SKIP() << skip_reason_;
  const auto all = run({"lossy_average", "delivery=best_effort", "rounds=20"});
  expect_lossy_average(all, kLoss);
  for (const Facts& facts : all) {
    if (!facts.is_object()) continue;
    EXPECT_EQ(facts["datagram_bytes"], 1472u);
    EXPECT_NEAR(facts["loss_first_pass"].get<double>(), kLoss, 0.01) << facts;
    std::printf("lossy, rank %d: loss %.4f seen, nmse %.5f, mean error %.1f standard errors\n",
                facts["rank"].get<int>(), facts["loss_first_pass"].get<double>(),
                facts["nmse"].get<double>(),
                facts["mean_error"].get<double>() / facts["standard_error"].get<double>());
  }
}

TEST_F(Namespaces, ExactAveragesAreEqualOnAllHosts) {
  if (!build({.loss_permille = 50})) GTEST_SKIP() << skip_reason_;
  const auto all = run({"lossy_average", "delivery=exact", "rounds=5"});
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_EQ(facts["digest"], all[0]["digest"]);
    EXPECT_LT(facts["nmse"], 1e-13);
  }
}

// Each of the four ranks owns a quarter of the tensor. It sends a contribution to each of three
// owners. It then sends its result three times by unicast, or once by multicast. So multicast needs
// (3 + 1) / (3 + 3), two thirds, of the datagrams.
TEST_F(Namespaces, MulticastOverABridgeSendsASpreadHalfOnce) {
  if (!build({})) GTEST_SKIP() << skip_reason_;
  const std::vector<std::string> scenario = {"repeat", "elements=262144", "rounds=20",
                                             "delivery=exact"};
  const auto datagrams_sent = [&](const Environment& environment) {
    std::vector<double> sent;
    for (const Facts& facts : run(scenario, environment)) {
      EXPECT_EQ(facts.value("wrong", -1), 0) << facts;
      sent.push_back(facts["counters"]["data_sent"]);
    }
    return sent;
  };
  const auto unicast = datagrams_sent({});
  const auto multicast = datagrams_sent({{"LEEWAY_MULTICAST", "1"}});
  ASSERT_EQ(unicast.size(), multicast.size());
  for (std::size_t rank = 0; rank < unicast.size(); ++rank) {
    std::printf("multicast, rank %zu: %.3f of the datagrams\n", rank,
                multicast[rank] / unicast[rank]);
    EXPECT_GT(multicast[rank] / unicast[rank], 4.0 / 6.0 - 0.01);
    // On a busy machine a rank may be too late for a multicast, and then gets the datagrams by
    // unicast.
    EXPECT_LT(multicast[rank] / unicast[rank], 0.85);
  }
}

TEST_F(Namespaces, MulticastUnderLossGivesTheSameBitsOnAllHosts) {
  if (!build({.loss_permille = 50})) GTEST_SKIP() << skip_reason_;
  const auto all =
      run({"lossy_average", "delivery=best_effort", "rounds=20"}, {{"LEEWAY_MULTICAST", "1"}});
  expect_lossy_average(all, kLoss);
  for (const Facts& facts : all) EXPECT_EQ(facts["digest"], all[0]["digest"]);
}

TEST_F(Namespaces, TheNarrowestLinkDecidesTheDatagramSize) {
  if (!build({.loss_permille = 50, .mtu_of = {1500, 1500, 1500, 1400}}))
    GTEST_SKIP() << skip_reason_;
  const auto all = run({"lossy_average", "delivery=exact", "rounds=3"});
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_EQ(facts["datagram_bytes"], 1400u - 28u) << facts;
    EXPECT_EQ(facts["digest"], all[0]["digest"]);
    EXPECT_LT(facts["nmse"], 1e-13);
  }
}

TEST_F(Namespaces, HostsBehindARouterMeet) {
  if (!build({.join = Join::router, .loss_permille = 50})) GTEST_SKIP() << skip_reason_;
  expect_exact(run({"collectives", "elements_max=20000"}));
}

// As in containers with --ipc=host, all ranks share memory, but each has a network of its own. A
// rank wakes a sleeping one by a datagram, which the bridge delivers.
TEST_F(Namespaces, RanksThatShareMemoryAndNoNetworkUseMemory) {
  if (!build({})) GTEST_SKIP() << skip_reason_;
  const auto all =
      run({"collectives", "elements_max=16384", "late_ms=50"}, {{"LEEWAY_TRANSPORT", "auto"}});
  expect_exact(all);
  int bells = 0;
  for (const Facts& facts : all) {
    if (facts.value("transport", "") == "verbs") GTEST_SKIP() << "this machine has RDMA";
    EXPECT_EQ(facts.value("transport", ""), "shm");
    bells += facts["counters"].value("shm_bells", 0);
  }
  EXPECT_GT(bells, 0) << "who sleeps is woken by a datagram, which must find its way";
}

// UCX wakes a rank by a socket that works only within a network namespace. Here each rank has its
// own namespace, so UCX wakes no rank. Calls may be late, but must be right.
TEST_F(Namespaces, UcxThatCannotWakeIsLateAndRight) {
  if (!build({})) GTEST_SKIP() << skip_reason_;
  const auto all =
      run({"collectives", "elements_max=16384", "late_ms=50"}, {{"LEEWAY_TRANSPORT", "ucx"}});
  for (const Facts& facts : all) {
    const std::string text = facts.value("/error/text"_json_pointer, "");
    if (text.find("without UCX") != std::string::npos) GTEST_SKIP() << text;
    EXPECT_EQ(facts.value("transport", ""), "ucx");
  }
  expect_exact(all);
}

TEST(NetworkLab, LeavesNothingBehind) {
  std::string obstacle;
  auto lab = NetworkLab::create({.hosts = 1}, obstacle);
  if (lab == nullptr) GTEST_SKIP() << obstacle;
  const std::string name = lab->prefix_of(0).back();
  EXPECT_NE(run_command({"ip", "netns", "list"}).output.find(name), std::string::npos);
  lab.reset();
  EXPECT_EQ(run_command({"ip", "netns", "list"}).output.find(name), std::string::npos);
}

}  // namespace
}  // namespace leeway::integration
