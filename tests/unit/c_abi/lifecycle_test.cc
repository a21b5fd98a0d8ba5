// Tests C communicators from creation to end.
#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <string>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using testing::Group;
using testing::input_of;
using testing::output_of;

TEST(CLifecycle, GettersKnowTheGroup) {
  Group group(3);
  EXPECT_EQ(leeway_rank_of(group.ranks[2]), 2);
  EXPECT_EQ(leeway_size_of(group.ranks[2]), 3);
  EXPECT_GT(leeway_datagram_bytes(group.ranks[0]), 500u);
  EXPECT_EQ(leeway_transport_of(group.ranks[0]), LEEWAY_TRANSPORT_INPROC);
  EXPECT_EQ(leeway_state(group.ranks[0]), LEEWAY_OK);
  EXPECT_DONE(leeway_explain(group.ranks[0]));
}

TEST(CLifecycle, AFailureHandsOutNothing) {
  leeway_communicator* ranks[3] = {};
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.peer_timeout_ns = 1;
  std::fill_n(ranks, 3, reinterpret_cast<leeway_communicator*>(1));
  EXPECT_FAILS(leeway_create_inproc(3, &options, ranks), LEEWAY_INVALID_ARGUMENT, "peer_timeout");
  EXPECT_THAT(ranks, ::testing::Each(nullptr));
  EXPECT_EQ(leeway_create_inproc(0, nullptr, ranks), LEEWAY_INVALID_ARGUMENT);
  EXPECT_EQ(leeway_create_inproc(-1, nullptr, ranks), LEEWAY_INVALID_ARGUMENT);
}

TEST(CLifecycle, AloneWithoutOptions) {
  leeway_communicator* alone = nullptr;
  ASSERT_DONE(leeway_create(nullptr, &alone));
  EXPECT_EQ(leeway_size_of(alone), 1);
  leeway_communicator_free(alone);
}

TEST(CLifecycle, SplitsByColor) {
  Group group(4);
  group.on_all([](leeway_communicator* rank) {
    const int self = leeway_rank_of(rank);
    leeway_communicator* part = nullptr;
    ASSERT_DONE(leeway_split(rank, self == 3 ? LEEWAY_NO_COLOR : 1, -self, &part));
    if (self == 3) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    EXPECT_EQ(leeway_size_of(part), 3);
    EXPECT_EQ(leeway_rank_of(part), 2 - self);
    EXPECT_DONE(leeway_barrier(part, LEEWAY_NO_DEADLINE, nullptr));
    leeway_communicator_free(part);
  });
}

TEST(CLifecycle, SplitsInTheBackground) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    leeway_pending* pending = nullptr;
    ASSERT_DONE(leeway_split_async(rank, 0, 0, &pending));
    leeway_communicator *part = nullptr, *again = nullptr;
    EXPECT_DONE(leeway_pending_wait(pending, &part));
    EXPECT_EQ(leeway_pending_done(pending), 1);
    EXPECT_EQ(leeway_size_of(part), 2);
    EXPECT_EQ(leeway_pending_wait(pending, &again), LEEWAY_INVALID_ARGUMENT);
    EXPECT_EQ(again, nullptr);
    leeway_pending_free(pending);
    EXPECT_DONE(leeway_barrier(part, LEEWAY_NO_DEADLINE, nullptr));
    leeway_communicator_free(part);
  });
}

TEST(CLifecycle, ShrinksAfterAnAbort) {
  Group group(3);
  leeway_communicator_free(group.ranks[1]);
  group.ranks[1] = nullptr;
  group.on_all([](leeway_communicator* rank) {
    if (rank == nullptr) return;
    leeway_abort(rank);
    const leeway_rank gone = 1;
    leeway_communicator* rest = nullptr;
    ASSERT_DONE(leeway_shrink(rank, &gone, 1, &rest));
    EXPECT_EQ(leeway_size_of(rest), 2);
    EXPECT_DONE(leeway_barrier(rest, LEEWAY_NO_DEADLINE, nullptr));
    leeway_communicator_free(rest);
  });
}

TEST(CLifecycle, AfterAnAbortCallsFail) {
  Group group(2);
  std::vector<float> values(10);
  leeway_work* work = nullptr;
  ASSERT_DONE(leeway_recv_async(group.ranks[0], output_of(values), 1, nullptr, &work));
  EXPECT_DONE(leeway_abort(group.ranks[0]));
  EXPECT_EQ(leeway_work_wait(work, nullptr), LEEWAY_CANCELLED) << leeway_last_error();
  leeway_work_free(work);
  EXPECT_EQ(leeway_state(group.ranks[0]), LEEWAY_CANCELLED);
  EXPECT_EQ(leeway_explain(group.ranks[0]), LEEWAY_CANCELLED);
  EXPECT_STRNE(leeway_last_error(), "");
  EXPECT_EQ(
      leeway_all_reduce(group.ranks[0], input_of(values), output_of(values), nullptr, nullptr),
      LEEWAY_CANCELLED);
}

TEST(CLifecycle, CreationIsTakenBack) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  leeway_rendezvous* store = nullptr;
  ASSERT_DONE(leeway_rendezvous_in_process(&store));
  options.rank = 0;
  options.world_size = 2;
  options.transport = LEEWAY_TRANSPORT_UDP;
  options.bind_address = "127.0.0.1";
  options.store = store;
  leeway_pending* pending = nullptr;
  ASSERT_DONE(leeway_create_async(&options, &pending));
  leeway_rendezvous_free(store);
  std::atomic<int> calls = 0;
  EXPECT_DONE(leeway_pending_on_done(
      pending, [](void* user) { ++*static_cast<std::atomic<int>*>(user); }, &calls));
  EXPECT_DONE(leeway_pending_abort(pending));
  leeway_communicator* communicator = nullptr;
  EXPECT_EQ(leeway_pending_wait(pending, &communicator), LEEWAY_CANCELLED);
  EXPECT_EQ(communicator, nullptr);
  leeway_pending_free(pending);
  EXPECT_EQ(calls.load(), 1);
}

TEST(CLifecycle, CountersAndRegisteredMemory) {
  Group group(1);
  std::set<std::string> names;
  EXPECT_DONE(leeway_counters(
      group.ranks[0],
      [](void* user, const char* name, std::uint64_t) {
        static_cast<std::set<std::string>*>(user)->insert(name);
      },
      &names));
  EXPECT_GT(names.size(), 10u);
  std::vector<float> memory(100);
  leeway_registration* registration = nullptr;
  EXPECT_DONE(leeway_register_memory(group.ranks[0], memory.data(), 400, &registration));
  EXPECT_NE(registration, nullptr);
  leeway_registration_free(registration);
}

}  // namespace
}  // namespace leeway::c_abi
