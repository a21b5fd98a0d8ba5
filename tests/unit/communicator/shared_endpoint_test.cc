// Groups that meet separately must share the sockets and threads of this process's endpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/process_threads.h"
#include "support/secret_line.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

constexpr int kRanks = 3;
using Group = std::vector<std::unique_ptr<Communicator>>;

class SharedEndpoint : public ::testing::Test {
 protected:
  // Makes every rank meet the others under `name`, each on a thread of its own.
  Group meet(const std::string& name, int ranks = kRanks, const std::string& secret = "") {
    Group group(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Options options;
        options.store = store_;
        options.communicator_name = name;
        options.transport = TransportKind::udp;
        options.bind_address = "127.0.0.1";
        options.rank = rank;
        options.world_size = ranks;
        options.join_timeout = 20s;
        options.secret = secret;
        options.secret_for_meeting_only = !secret.empty();
        auto made = Communicator::create(options);
        ASSERT_TRUE(made.ok()) << made.status().c_str();
        group[static_cast<std::size_t>(rank)] = std::move(*made);
      });
    }
    for (auto& thread : threads) thread.join();
    return group;
  }
  static void reduce(Group& group) {
    std::vector<std::thread> threads;
    for (auto& rank : group) {
      threads.emplace_back([&] {
        std::vector<float> data(20'000, 1.0f);
        const auto report = rank->all_reduce(std::span(data));
        ASSERT_TRUE(report.ok()) << report.status().c_str();
        EXPECT_THAT(data, Each(static_cast<float>(group.size())));
      });
    }
    for (auto& thread : threads) thread.join();
  }

  std::shared_ptr<Rendezvous> store_ = std::make_shared<InprocRendezvous>();
};

TEST_F(SharedEndpoint, LaterGroupsUseTheThreadsAndSocketsOfTheFirst) {
  Group world = meet("world");
  const std::size_t threads = testing::threads_now();
  std::vector<Group> more;
  for (int i = 0; i < 8; ++i) more.push_back(meet("group " + std::to_string(i), 2 + i % 2));
  EXPECT_TRUE(testing::threads_fall_to(threads));
  for (Group& group : more) reduce(group);
  reduce(world);
}

// Each group has its own secret, as if it came with NCCL's unique id.
TEST_F(SharedEndpoint, GroupsWithSecretsOfTheirOwnShareIt) {
  Group world = meet("world", kRanks, secret_digits('a'));
  const std::size_t threads = testing::threads_now();
  std::vector<Group> more;
  for (const char letter : {'b', 'c', 'd', 'e'})
    more.push_back(meet(std::string("group ") + letter, kRanks, secret_digits(letter)));
  EXPECT_TRUE(testing::threads_fall_to(threads));
  for (Group& group : more) reduce(group);
  reduce(world);
}

TEST_F(SharedEndpoint, AGroupOutlivesTheOneThatOpenedIt) {
  Group world = meet("world");
  Group second = meet("second");
  world.clear();
  reduce(second);
  Group third = meet("third");
  reduce(third);
}

TEST_F(SharedEndpoint, LeavesNothingBehind) {
  meet("first").clear();
  const std::size_t threads = testing::threads_now();
  for (int i = 0; i < 20; ++i) {
    Group group = meet("again " + std::to_string(i));
    reduce(group);
  }
  EXPECT_TRUE(testing::threads_fall_to(threads));
}

}  // namespace
}  // namespace leeway
