// Tests the C handles of operations in flight.
#include <gmock/gmock.h>

#include <atomic>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using testing::Group;
using testing::input_of;
using testing::output_of;

// An all_reduce in progress on every rank of a group.
struct Flight {
  explicit Flight(Group& group) : values(group.ranks.size()), works(group.ranks.size()) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      values[i].assign(1000, 1.0f);
      EXPECT_DONE(leeway_all_reduce_async(group.ranks[i], input_of(values[i]), output_of(values[i]),
                                          nullptr, &works[i]));
    }
  }
  ~Flight() {
    for (leeway_work* work : works) leeway_work_free(work);
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  std::vector<std::vector<float>> values;
  std::vector<leeway_work*> works;
};

// Starts a receive to which nothing is sent.
leeway_work* idle_work(leeway_communicator* rank, std::vector<float>& into) {
  leeway_work* work = nullptr;
  EXPECT_DONE(leeway_recv_async(rank, output_of(into), 1, nullptr, &work));
  return work;
}

TEST(CWork, WaitsForAll) {
  Group group(3);
  Flight flight(group);
  EXPECT_DONE(leeway_work_wait_all(flight.works.data(), flight.works.size()));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(leeway_work_done(flight.works[i]), 1);
    EXPECT_EQ(flight.values[i].back(), 3.0f);
    EXPECT_DONE(leeway_work_wait(flight.works[i], nullptr)) << "a second time";
  }
}

TEST(CWork, WaitsForTheFirst) {
  Group group(2);
  std::vector<float> never(1);
  leeway_work* works[3] = {nullptr, idle_work(group.ranks[0], never), nullptr};
  Flight flight(group);
  works[2] = flight.works[0];
  std::size_t index = 99;
  EXPECT_DONE(leeway_work_wait_any(works, 3, &index));
  EXPECT_EQ(index, 2u);
  EXPECT_DONE(leeway_work_wait_any(works, 1, &index));
  EXPECT_EQ(index, 1u) << "of NULL alone: none";
  EXPECT_DONE(leeway_work_wait_all(flight.works.data(), 2));
  leeway_abort(group.ranks[0]);
  leeway_work_free(works[1]);
}

TEST(CWork, TestsTakePart) {
  Group group(2);
  Flight flight(group);
  while (leeway_work_test(flight.works[0]) == 0 || leeway_work_test(flight.works[1]) == 0) {
  }
  EXPECT_EQ(flight.values[0][0], 2.0f);
}

TEST(CWork, CallsBackOnce) {
  Group group(2);
  Flight flight(group);
  std::atomic<int> calls = 0;
  const auto count = [](void* user) { ++*static_cast<std::atomic<int>*>(user); };
  EXPECT_DONE(leeway_work_on_done(flight.works[0], count, &calls));
  EXPECT_DONE(leeway_work_wait_all(flight.works.data(), 2));
  while (calls.load() == 0) std::this_thread::yield();
  EXPECT_DONE(leeway_work_on_done(flight.works[0], count, &calls)) << "done already: at once";
  EXPECT_EQ(calls.load(), 2);
}

TEST(CWork, AHandleMayEndBeforeItsOperation) {
  Group group(2);
  std::vector<float> values[2] = {std::vector<float>(1000, 1.0f), std::vector<float>(1000, 1.0f)};
  leeway_work* works[2];
  for (int i = 0; i < 2; ++i)
    EXPECT_DONE(leeway_all_reduce_async(group.ranks[i], input_of(values[i]), output_of(values[i]),
                                        nullptr, &works[i]));
  leeway_work_free(works[0]);
  EXPECT_DONE(leeway_work_wait(works[1], nullptr));
  leeway_work_free(works[1]);
  group.on_all([](leeway_communicator* rank) {
    EXPECT_DONE(leeway_barrier(rank, LEEWAY_NO_DEADLINE, nullptr));
  });
}

TEST(CWork, ACallbackMayFreeItsCommunicator) {
  leeway_communicator* ranks[2] = {};
  ASSERT_DONE(leeway_create_inproc(2, nullptr, ranks));
  std::vector<float> never(1);
  leeway_work* idle = idle_work(ranks[0], never);
  std::vector<float> values[2] = {std::vector<float>(10, 1.0f), std::vector<float>(10, 1.0f)};
  leeway_work* works[2];
  for (int i = 0; i < 2; ++i)
    ASSERT_DONE(leeway_all_reduce_async(ranks[i], input_of(values[i]), output_of(values[i]),
                                        nullptr, &works[i]));
  ASSERT_DONE(leeway_work_on_done(
      works[0],
      [](void* user) { leeway_communicator_free(static_cast<leeway_communicator*>(user)); },
      ranks[0]));
  EXPECT_DONE(leeway_work_wait(works[0], nullptr));
  EXPECT_EQ(leeway_work_wait(idle, nullptr), LEEWAY_CANCELLED) << leeway_last_error();
  // Rank 1's result is not checked, because it depends on what rank 1 had heard of rank 0 before
  // rank 0 left.
  leeway_work_wait(works[1], nullptr);
  for (leeway_work* work : {works[0], works[1], idle}) leeway_work_free(work);
  leeway_communicator_free(ranks[1]);
}

}  // namespace
}  // namespace leeway::c_abi
