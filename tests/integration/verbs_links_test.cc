// Tests the verbs transport on Soft-RoCE devices behind links with the kernel's netem. The checks
// are the same as over UDP, with and without multicast. Other tests kill a rank, or remove a device
// during calls. Runs in the virtual machine of tools/vm_test.
#include <csignal>

#include "integration/exact_expectation.h"
#include "integration/link_matrix.h"
#include "integration/same_outcomes.h"

namespace leeway::integration {
namespace {

class Verbs : public LinkMatrix {
 protected:
  explicit Verbs(const char* multicast = "0")
      : LinkMatrix({{"LEEWAY_TRANSPORT", "verbs"}, {"LEEWAY_MULTICAST", multicast}}) {}
};

TEST_P(Verbs, EveryOperationIsExact) {
  expect_exact_operations();
}

TEST_P(Verbs, LossyOperationsAreRightInWhatAllBring) {
  expect_lossy_operations();
}

INSTANTIATE_TEST_SUITE_P(Links, Verbs, testing::ValuesIn(kLinkConditions), name_of_condition);

// Runs over one kind of link only, because statistics take long in an emulated machine.
class VerbsAverages : public Verbs {};

TEST_P(VerbsAverages, HaveTheErrorOfTheLoss) {
  expect_lossy_averages();
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsAverages, testing::Values(kTenthLost), name_of_condition);

class VerbsMulticast : public Verbs {
 protected:
  VerbsMulticast() : Verbs("1") {}
};

TEST_P(VerbsMulticast, EveryOperationIsExact) {
  expect_exact_operations();
}

TEST_P(VerbsMulticast, LossyOperationsAreRightInWhatAllBring) {
  expect_lossy_operations();
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsMulticast, testing::ValuesIn(kLinkConditions),
                         name_of_condition);

class VerbsMulticastCount : public VerbsMulticast {};

// A rank must send its spread half once, by multicast. In each of 5 all-reduces of 256 KiB over 4
// ranks, that half is 64 KiB, which takes at least 64 datagrams.
TEST_P(VerbsMulticastCount, SpreadHalvesGoOutOnce) {
  for (const Facts& facts : run({"repeat", "elements=65536", "rounds=5", "delivery=exact"})) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_GE(facts["counters"]["group_sent"], 5 * 64) << facts;
    EXPECT_EQ(facts["wrong"], 0) << facts;
  }
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsMulticastCount, testing::Values(kLinkConditions[0]),
                         name_of_condition);

class VerbsMemory : public Verbs {
 protected:
  // Returns how many datagrams all ranks copied in 5 all-reduces of 1 MiB.
  std::uint64_t copied(const char* registered, const char* delivery) {
    std::uint64_t sum = 0;
    for (const Facts& facts :
         run({"repeat", "elements=262144", "rounds=5", registered, delivery})) {
      EXPECT_TRUE(facts.is_object());
      EXPECT_EQ(facts["wrong"], 0) << facts;
      sum += facts["counters"]["datagrams_copied"].get<std::uint64_t>();
    }
    return sum;
  }
};

TEST_P(VerbsMemory, OfCallersIsReadInPlaceOnceRegistered) {
  EXPECT_EQ(copied("registered=1", "delivery=exact"), 0u);
  EXPECT_GE(copied("registered=0", "delivery=exact"), 4u * 5u * 3u * 2u * 64u);
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsMemory, testing::Values(kLinkConditions[0]),
                         name_of_condition);

class VerbsOutcomes : public LinkMatrix {
 protected:
  VerbsOutcomes() : LinkMatrix(kSameLosses) {}
  std::vector<Facts> over(const char* transport, const char* multicast) {
    return run({"outcomes"}, {{"LEEWAY_TRANSPORT", transport}, {"LEEWAY_MULTICAST", multicast}});
  }
};

TEST_P(VerbsOutcomes, AreThoseOfUdpInResultsAndReports) {
  expect_same_outcomes(over("udp", "0"), over("verbs", "0"));
}

TEST_P(VerbsOutcomes, AreThoseOfUdpWithMulticastToo) {
  expect_same_outcomes(over("udp", "1"), over("verbs", "1"));
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsOutcomes, testing::Values(kLinkConditions[0]),
                         name_of_condition);

class VerbsLarge : public Verbs {};

// Each of the 4 ranks has a block of 1 MiB, so calls gather or reduce 4 MiB.
TEST_P(VerbsLarge, FourMebibytesAreExact) {
  const auto all = run({"collectives", "elements_max=262144", "types=0"});
  for (const Facts& facts : all) expect_right(facts);
}

INSTANTIATE_TEST_SUITE_P(Links, VerbsLarge, testing::Values(kTenthLost), name_of_condition);

// Ranks make rounds until one of them, the victim, is killed or loses its device. Lossy rounds have
// a deadline of 0.9 s. So the deadline cuts three rounds after the harm, before the peer time-out
// of 3 s. An exact round fails at that time-out.
class VerbsHarm : public testing::Test {
 protected:
  static constexpr int kVictim = 2;
  static constexpr std::chrono::seconds kPatience{100};

  void SetUp() override {
    std::string obstacle;
    links_ = EmulatedLinks::create("", obstacle);
    if (links_ == nullptr) GTEST_SKIP() << obstacle;
  }
  RankGroup rounds_of(const std::string& delivery) {
    const auto& addresses = links_->addresses();
    RankSetup setup{.ranks = static_cast<int>(addresses.size()),
                    .scenario = {"endless_rounds", "elements=16384", "watched=2", "rounds=100000",
                                 "leave=1", "delivery=" + delivery},
                    .environment = {{"LEEWAY_TRANSPORT", "verbs"}},
                    .rendezvous = addresses[0] + ":" + std::to_string(free_port())};
    const bool exact = delivery == "exact";
    setup.scenario.push_back(exact ? "cuts=1" : "cuts=3");
    setup.scenario.push_back(exact ? "deadline_ms=60000" : "deadline_ms=900");
    for (const std::string& address : addresses) {
      setup.environment_of.push_back({{"LEEWAY_BIND", address}});
    }
    return RankGroup(setup);
  }
  std::vector<Facts> kill_one(const std::string& delivery) {
    RankGroup group = rounds_of(delivery);
    if (!group.await_mark("looping")) return {};
    group[kVictim].signal(SIGKILL);
    return group.finish(kPatience, kVictim);
  }
  std::vector<Facts> remove_device(const std::string& delivery);
  // Returns the rank's RDMA device as `rdma link` names it: "link rxe3/1 ... netdev v3".
  std::string device_of(int rank) const {
    const std::string rows = run_command({"rdma", "link"}).output;
    const std::size_t row = rows.rfind("link ", rows.find("netdev " + links_->names()[rank]));
    return rows.substr(row + 5, rows.find('/', row) - row - 5);
  }

  std::unique_ptr<EmulatedLinks> links_;
};

void expect_each_but(int victim, const std::vector<Facts>& all, const std::string& code) {
  ASSERT_EQ(all.size(), 4u);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (rank == victim) continue;
    ASSERT_TRUE(all[rank].is_object()) << "rank " << rank;
    EXPECT_EQ(all[rank]["first_error"]["code"], code) << all[rank]["first_error"];
  }
}

// Expects that the exact calls of all ranks but `victim` failed after the peer time-out, and that
// the error names the victim.
void expect_named_by_others(int victim, const std::vector<Facts>& all) {
  expect_each_but(victim, all, "peer_lost");
  ASSERT_FALSE(all.empty());
  const std::string text = all[0]["first_error"]["text"];
  EXPECT_NE(text.find("rank " + std::to_string(victim)), std::string::npos) << text;
}

TEST_F(VerbsHarm, OfAKilledRankLeavesLossyCallsWithWhatTheyHave) {
  expect_each_but(kVictim, kill_one("best_effort"), "ok");
}

TEST_F(VerbsHarm, OfAKilledRankIsNamedByExactCalls) {
  expect_named_by_others(kVictim, kill_one("exact"));
}

// Removes the victim's device during rounds. Returns the facts of all ranks.
std::vector<Facts> VerbsHarm::remove_device(const std::string& delivery) {
  const std::string device = device_of(kVictim);
  RankGroup group = rounds_of(delivery);
  if (!group.await_mark("looping")) return {};
  // `rdma link del` waits for all users of the device. If it ends while the rank lives, the
  // transport has released the device.
  EXPECT_EQ(run_command({"rdma", "link", "del", device}, std::chrono::seconds(30)).exit_code, 0);
  const auto all = group.finish(kPatience);
  run_command({"rdma", "link", "add", device, "type", "rxe", "netdev", links_->names()[kVictim]});
  EXPECT_TRUE(all.size() == 4 && all[kVictim].is_object());
  if (all.size() != 4 || !all[kVictim].is_object()) return {};
  const Facts& error = all[kVictim]["first_error"];
  EXPECT_EQ(error["code"], "unavailable") << error;
  EXPECT_NE(error["text"].get<std::string>().find(device), std::string::npos) << error;
  return all;
}

TEST_F(VerbsHarm, OfADeviceRemovedUnderWayIsNamedAtOnceAndTheOthersGoOn) {
  expect_each_but(kVictim, remove_device("best_effort"), "ok");
}

TEST_F(VerbsHarm, OfADeviceRemovedUnderExactCallsIsNamedThereAndItsRankByTheOthers) {
  expect_named_by_others(kVictim, remove_device("exact"));
}

}  // namespace
}  // namespace leeway::integration
