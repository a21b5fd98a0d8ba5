#include "communicator/memory_sharing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "rendezvous/group.h"
#include "support/secret_line.h"
#include "transport/near_datagram.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;

rendezvous::MemoryPlace place(std::uint8_t boot, std::uint32_t user, std::uint8_t token) {
  rendezvous::MemoryPlace made;
  made.boot.fill(std::byte{boot});
  made.user = user;
  made.token.fill(std::byte{token});
  return made;
}

TEST(MemorySharing, IsForTheAutomaticChoiceAndForThoseWhoAskByName) {
  Options options;
  EXPECT_TRUE(may_share_memory(options));
  options.faults.loss = 0.1;
  EXPECT_FALSE(may_share_memory(options)) << "they stand for a network's";
  options.transport = TransportKind::mixed;
  EXPECT_TRUE(may_share_memory(options));
  options.transport = TransportKind::shm;
  EXPECT_TRUE(may_share_memory(options));
  for (const auto kind : {TransportKind::udp, TransportKind::verbs, TransportKind::ucx}) {
    options = {};
    options.transport = kind;
    EXPECT_FALSE(may_share_memory(options)) << to_string(kind);
  }
}

TEST(MemorySharing, APlaceIsOfThisUserAndNew) {
  const auto one = new_memory_place();
  if (!one.shares()) GTEST_SKIP() << check_memory().c_str();
  EXPECT_EQ(one.user, ::geteuid());
  EXPECT_NE(new_memory_place().token, one.token);
  EXPECT_EQ(new_memory_place().boot, one.boot);
}

TEST(MemorySharing, AllMayShareWhereAllAreOfOneKernelAndOneUser) {
  rendezvous::Group group;
  EXPECT_FALSE(all_may_share(group));
  group.memories = {place(1, 7, 1), place(1, 7, 2), place(1, 7, 3)};
  EXPECT_TRUE(all_may_share(group));
  group.memories[1].user = 8;
  EXPECT_FALSE(all_may_share(group));
  group.memories[1] = place(2, 7, 2);
  EXPECT_FALSE(all_may_share(group));
  group.memories[1] = {};
  EXPECT_FALSE(all_may_share(group));
}

// Ranks are threads of one process, with real sockets and memory.
class SharingRanks : public ::testing::Test {
 protected:
  void join(int size, const Options& like) {
    Options options = like;
    options.store = std::make_shared<InprocRendezvous>();
    options.world_size = size;
    options.bind_address = "127.0.0.1";
    all_.resize(static_cast<std::size_t>(size));
    std::vector<std::thread> joining;
    for (int rank = 0; rank < size; ++rank) {
      joining.emplace_back([this, options, rank]() mutable {
        options.rank = rank;
        auto made = Communicator::create(options);
        ASSERT_TRUE(made.ok()) << made.status().c_str();
        all_[static_cast<std::size_t>(rank)] = std::move(*made);
      });
    }
    for (std::thread& one : joining) one.join();
  }
  std::uint64_t counter(std::size_t rank, const std::string& name) const {
    for (const auto& [key, value] : all_[rank]->counters()) {
      if (key == name) return value;
    }
    return UINT64_MAX;
  }
  // Expects the right sum on all ranks, each called on its own thread.
  void expect_sums(std::size_t elements, const CollectiveOptions& options = {}) {
    std::vector<std::thread> calling;
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      calling.emplace_back([this, rank, elements, options] {
        std::vector<float> values(elements, static_cast<float>(rank + 1));
        const auto report = all_[rank]->all_reduce(std::span(values), options);
        ASSERT_TRUE(report.ok()) << report.status().c_str();
        const auto n = static_cast<float>(all_.size());
        for (const float value : values) ASSERT_EQ(value, n * (n + 1) / 2);
      });
    }
    for (std::thread& one : calling) one.join();
  }
  std::vector<std::unique_ptr<Communicator>> all_;
};

TEST_F(SharingRanks, ReduceThroughMemoryInLongDatagrams) {
  if (!check_memory().ok()) GTEST_SKIP() << check_memory().c_str();
  Options options;
  options.transport = TransportKind::shm;
  join(3, options);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(all_[rank]->transport(), TransportKind::shm);
    EXPECT_EQ(all_[rank]->datagram_bytes(), transport::kNearDatagramBytes);
  }
  expect_sums(100'000);
  expect_sums(100'000, {.delivery = best_effort(10s)});
  EXPECT_GT(counter(0, "shm_datagrams_sent"), 10u);
  EXPECT_EQ(counter(0, "shm_peers"), 2u);
}

TEST_F(SharingRanks, SplitGoesThroughMemory) {
  if (!check_memory().ok()) GTEST_SKIP() << check_memory().c_str();
  Options options;
  options.transport = TransportKind::mixed;
  join(2, options);
  std::vector<std::unique_ptr<Communicator>> halves(2);
  std::vector<std::thread> splitting;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    splitting.emplace_back(
        [&, rank] { halves[rank] = std::move(all_[rank]->split(0, 0).value()); });
  }
  for (std::thread& one : splitting) one.join();
  EXPECT_EQ(halves[0]->transport(), TransportKind::shm);
  all_.swap(halves);
  expect_sums(10'000);
  halves.clear();
}

TEST_F(SharingRanks, UdpMeansUdpAlone) {
  Options options;
  options.transport = TransportKind::udp;
  join(2, options);
  expect_sums(10'000);
  EXPECT_EQ(all_[0]->transport(), TransportKind::udp);
  EXPECT_EQ(counter(0, "shm_peers"), UINT64_MAX) << "there is nothing to count";
}

TEST_F(SharingRanks, WithASecretTheirBellsAreSealed) {
  if (!check_memory().ok()) GTEST_SKIP() << check_memory().c_str();
  Options options;
  options.transport = TransportKind::mixed;
  options.secret = secret_digits('a');
  join(2, options);
  EXPECT_EQ(all_[0]->transport(), TransportKind::shm);
  const std::uint64_t sealed = counter(0, "sealed");
  EXPECT_GT(sealed, 0u);
  expect_sums(1'000'000, {.delivery = best_effort(10s)});
  EXPECT_LT(counter(0, "sealed"), sealed + 100) << "data go through memory";
  EXPECT_GT(counter(0, "shm_bytes_sent"), 2'000'000u);
}

}  // namespace
}  // namespace leeway::internal
