#include "transport/ucx/wake_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <barrier>
#include <cstdlib>
#include <thread>

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

struct Trial {
  std::vector<Status> verdicts;  // by rank
  double seconds = 0;            // time of the slowest rank
  std::size_t left_over = 0;     // datagrams that the proof did not take
};

// One thread a rank. The last rank is in a network namespace of its own if `apart`; `permitted`
// says whether that was possible.
Trial prove(int size, const char* devices, bool apart, bool& permitted) {
  setenv("UCX_TLS", devices, 1);
  Trial trial{std::vector<Status>(size)};
  std::vector<std::unique_ptr<UcxTransport>> transports(size);
  std::vector<std::vector<std::byte>> addresses(size);
  std::vector<double> seconds(size);
  std::barrier<> together(size);
  permitted = true;
  const auto rank_main = [&](int rank) {
    if (apart && rank == size - 1) permitted = unshare(CLONE_NEWNET) == 0;
    transports[rank] = UcxTransport::open({}).value();
    addresses[rank] = transports[rank]->local_address();
    together.arrive_and_wait();
    trial.verdicts[rank] = transports[rank]->set_peers(addresses, static_cast<Rank>(rank));
    const auto start = std::chrono::steady_clock::now();
    if (trial.verdicts[rank].ok()) {
      trial.verdicts[rank] =
          UcxWakeProof(*transports[rank], static_cast<Rank>(rank), size).run(10s);
    }
    seconds[rank] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    together.arrive_and_wait();
  };
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(rank_main, rank);
  ranks.clear();
  std::vector<Received> out(8);
  for (auto& transport : transports) trial.left_over += transport->receive(out);
  trial.seconds = *std::max_element(seconds.begin(), seconds.end());
  return trial;
}

class UcxWakeProofOver : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, UcxWakeProofOver, testing::Values("self,posix", "self,sysv", "self,tcp"),
                         [](const auto& over) { return std::string(over.param).substr(5); });

TEST_P(UcxWakeProofOver, RanksThatWakeEachOtherPassAndLeaveNothingBehind) {
  for (const int size : {1, 2, 3, 4, 7}) {
    bool permitted = true;
    const Trial trial = prove(size, GetParam(), /*apart=*/false, permitted);
    for (const Status& verdict : trial.verdicts) EXPECT_TRUE(verdict.ok()) << verdict.c_str();
    EXPECT_EQ(trial.left_over, 0u) << size;
    std::printf("%d ranks: %.2f ms\n", size, trial.seconds * 1e3);
  }
}

// A group of many is proven in rounds of disjoint pairs: time grows with ranks, not with pairs. All
// threads share this machine's few cores, so the time is printed and not judged.
TEST(UcxWakeProof, ManyRanksPass) {
  bool permitted = true;
  const Trial trial = prove(24, "self,posix", /*apart=*/false, permitted);
  for (const Status& verdict : trial.verdicts) EXPECT_TRUE(verdict.ok()) << verdict.c_str();
  std::printf("24 ranks: %.1f ms\n", trial.seconds * 1e3);
}

TEST(UcxWakeProof, ARankInAnotherNetworkNamespaceFailsTheProofOnEveryRankWithinASecond) {
  for (const char* devices : {"self,posix", "self,sysv"}) {
    bool permitted = true;
    const Trial trial = prove(4, devices, /*apart=*/true, permitted);
    if (!permitted) GTEST_SKIP() << "no permission for a network namespace";
    for (const Status& verdict : trial.verdicts) {
      EXPECT_EQ(verdict.code(), StatusCode::kUnavailable);
      EXPECT_THAT(verdict.c_str(), AnyOf(HasSubstr("by what rank 3"), HasSubstr("rank 3 is not")));
      EXPECT_THAT(verdict.c_str(), HasSubstr("--network=host"));
    }
    EXPECT_LT(trial.seconds, 1.0);
    std::printf("%s, one rank apart: %.0f ms\n", devices, trial.seconds * 1e3);
  }
}

}  // namespace
}  // namespace leeway::transport
