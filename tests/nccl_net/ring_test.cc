// Tests rings like NCCL's, within a process and between processes, through every version of the
// plugin's interface.
#include "ring.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <barrier>
#include <memory>
#include <thread>

#include "peer.h"

namespace nccl_net_test {

bool RingRank::run(const std::function<Handle(const Handle& own)>& exchange) {
  Handle own(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  if (net_.listen(0, own, &listener) != kSuccess) return false;
  Handle next = exchange(own);
  void* sender = nullptr;
  void* receiver = nullptr;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (sender == nullptr || receiver == nullptr) {
    if (sender == nullptr && net_.connect(0, next, &sender) != kSuccess) return false;
    if (receiver == nullptr && net_.accept(listener, &receiver) != kSuccess) return false;
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  if (net_.close_listen(listener) != kSuccess) return false;
  const bool good = move(sender, receiver);
  (void)net_.close_send(sender);
  (void)net_.close_receive(receiver);
  if (net_.finalize) (void)net_.finalize();
  return good;
}

// Sends and receives messages of sizes that NCCL uses: a slice of 512 KiB, a partial slice, flags,
// and nothing.
bool RingRank::move(void* sender, void* receiver) const {
  for (const std::size_t size :
       {std::size_t{512} << 10, std::size_t{12'345}, std::size_t{16}, std::size_t{0}}) {
    constexpr int kMessages = 24;
    constexpr int kSteps = 8;
    bool sent = false;
    std::thread sending([&] { sent = send_stream(net_, sender, kMessages, size, kSteps); });
    const bool received = receive_stream(net_, receiver, kMessages, size, kSteps);
    sending.join();
    if (!sent || !received) return false;
  }
  return true;
}

namespace {

class Ring : public testing::TestWithParam<int> {};

TEST_P(Ring, OfFourThreadsMovesEverythingUnchanged) {
  constexpr int kRanks = 4;
  const Net net = load(GetParam());
  std::vector<Handle> handles(kRanks);
  std::barrier listening(kRanks);
  std::vector<char> good(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      good[rank] = RingRank(net).run([&](const Handle& own) {
        handles[rank] = own;
        listening.arrive_and_wait();
        return handles[(rank + 1) % kRanks];
      });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(good, std::vector<char>(kRanks, 1));
  EXPECT_EQ(take_warnings(), std::vector<std::string>());
}

TEST_P(Ring, OfFourProcessesMovesEverythingUnchanged) {
  constexpr int kRanks = 4;
  std::vector<std::unique_ptr<Peer>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::make_unique<Peer>("ring", std::vector{std::to_string(GetParam())}));
  std::vector<Handle> handles;
  for (const auto& rank : ranks) handles.push_back(rank->read_handle());
  for (int rank = 0; rank < kRanks; ++rank) ranks[rank]->write_handle(handles[(rank + 1) % kRanks]);
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait_for_end(), 0);
}

INSTANTIATE_TEST_SUITE_P(OfVersion, Ring, testing::Range(kVersionFirst, kVersionLast + 1),
                         [](const auto& version) { return std::to_string(version.param); });

}  // namespace
}  // namespace nccl_net_test
