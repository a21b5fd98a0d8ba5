#include "interop/nccl/hierarchy/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace leeway::nccl {
namespace {

std::vector<std::unique_ptr<Watch>> watches(int size) {
  auto team = Communicator::create_inproc(size);
  EXPECT_TRUE(team.ok());
  std::vector<std::unique_ptr<Watch>> out;
  for (auto& one : *team) out.push_back(std::make_unique<Watch>(std::move(one)));
  return out;
}

TEST(NcclWatch, ARankThatLeavesWithoutAWordAlarmsTheOthers) {
  const auto ranks = watches(3);
  std::promise<Status> first;
  std::promise<Status> second;
  ranks[1]->arm([&](const Status& why) { first.set_value(why); });
  ranks[2]->arm([&](const Status& why) { second.set_value(why); });
  ranks[0]->raise();
  EXPECT_FALSE(first.get_future().get().ok());
  EXPECT_FALSE(second.get_future().get().ok());
  EXPECT_TRUE(ranks[1]->alarmed());
  EXPECT_FALSE(ranks[0]->alarmed()) << "its own end is no alarm";
}

TEST(NcclWatch, AnAlarmIsNotMissedBeforeItIsArmed) {
  auto ranks = watches(2);
  ranks[0].reset();
  while (!ranks[1]->alarmed()) std::this_thread::yield();
  bool called = false;
  ranks[1]->arm([&](const Status& why) { called = !why.ok(); });
  EXPECT_TRUE(called);
}

TEST(NcclWatch, RanksThatLeaveInGoodOrderAlarmNobody) {
  auto ranks = watches(3);
  std::atomic<int> alarms{0};
  for (const auto& one : ranks) one->arm([&](const Status&) { ++alarms; });
  std::vector<std::thread> threads;
  for (const auto& one : ranks) threads.emplace_back([&one] { one->leave(); });
  for (std::thread& thread : threads) thread.join();
  ranks.clear();
  EXPECT_EQ(alarms, 0);
}

}  // namespace
}  // namespace leeway::nccl
