// The C functions in a forked child: each says "forked" or does nothing, and returns at once.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using testing::Group;
using ::testing::HasSubstr;
using testing::input_of;
using testing::output_of;

#define EXPECT_FORKED(call) EXPECT_FAILS(call, LEEWAY_UNAVAILABLE, "forked")

// Expects a blocking call, and the work of its asynchronous twin, to fail with "forked".
#define EXPECT_BOTH_FORKED(name, ...)                          \
  do {                                                         \
    EXPECT_FORKED(leeway_##name(c, __VA_ARGS__, nullptr));     \
    leeway_work* work = nullptr;                               \
    EXPECT_DONE(leeway_##name##_async(c, __VA_ARGS__, &work)); \
    EXPECT_FORKED(leeway_work_wait(work, nullptr));            \
    leeway_work_free(work);                                    \
  } while (false)

void make_calls(leeway_communicator* c) {
  std::vector<float> one(2, 1.0f), out(2), two(4), half(1);
  const std::array<std::size_t, 2> counts = {1, 1};
  const leeway_blocks blocks = {counts.data(), nullptr};
  EXPECT_BOTH_FORKED(all_reduce, input_of(one), output_of(out), nullptr);
  EXPECT_BOTH_FORKED(reduce_scatter, input_of(two), output_of(out), nullptr);
  EXPECT_BOTH_FORKED(reduce_scatter_uneven, input_of(one), blocks, output_of(half), nullptr);
  EXPECT_BOTH_FORKED(all_gather, input_of(one), output_of(two), nullptr);
  EXPECT_BOTH_FORKED(all_gather_uneven, input_of(half), output_of(out), blocks, nullptr);
  EXPECT_BOTH_FORKED(broadcast, output_of(one), 0, nullptr);
  EXPECT_BOTH_FORKED(reduce, input_of(one), output_of(out), 0, nullptr);
  EXPECT_BOTH_FORKED(gather, input_of(one), output_of(two), 0, nullptr);
  EXPECT_BOTH_FORKED(scatter, input_of(two), output_of(out), 0, nullptr);
  EXPECT_BOTH_FORKED(all_to_all, input_of(one), output_of(out), nullptr);
  EXPECT_BOTH_FORKED(all_to_all_uneven, input_of(one), blocks, output_of(out), blocks, nullptr);
  EXPECT_BOTH_FORKED(send, input_of(one), 1, nullptr);
  EXPECT_BOTH_FORKED(recv, output_of(out), 1, nullptr);
  leeway_message message = LEEWAY_MESSAGE_INIT;
  message.data = one.data();
  message.count = one.size();
  message.peer = 1;
  EXPECT_BOTH_FORKED(exchange, &message, 1, nullptr);
  EXPECT_BOTH_FORKED(barrier, LEEWAY_NO_DEADLINE);
}

void make_others(leeway_communicator* c) {
  const leeway_rank excluded = 1;
  leeway_communicator* made = nullptr;
  EXPECT_FORKED(leeway_split(c, 0, 0, &made));
  EXPECT_FORKED(leeway_shrink(c, &excluded, 1, &made));
  leeway_pending* pending = nullptr;
  EXPECT_DONE(leeway_split_async(c, 0, 0, &pending));
  EXPECT_FORKED(leeway_pending_wait(pending, &made));
  leeway_pending_free(pending);
  EXPECT_DONE(leeway_shrink_async(c, &excluded, 1, &pending));
  EXPECT_FORKED(leeway_pending_wait(pending, &made));
  leeway_pending_free(pending);
  std::vector<float> memory(10);
  leeway_registration* registration = nullptr;
  EXPECT_FORKED(leeway_register_memory(c, memory.data(), 40, &registration));
  leeway_replica* replica = nullptr;
  EXPECT_FORKED(leeway_replica_create(c, memory.data(), memory.size(), nullptr, &replica));
  leeway_compute_budget_options options = LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT;
  options.micro_batches = 2;
  leeway_compute_budget* budget = nullptr;
  EXPECT_FORKED(leeway_compute_budget_create(c, &options, &budget));
  EXPECT_EQ(leeway_state(c), LEEWAY_UNAVAILABLE);
  EXPECT_FORKED(leeway_explain(c));
  EXPECT_EQ(leeway_size_of(c), 2);
  int rows = 0;
  const auto count = [](void* user, const char*, std::uint64_t) { ++*static_cast<int*>(user); };
  EXPECT_DONE(leeway_counters(c, count, &rows));
  EXPECT_EQ(rows, 0);
  EXPECT_DONE(leeway_notify_payload(c));
  EXPECT_DONE(leeway_abort(c));
}

TEST(CFork, TheChildGetsErrorsAndTheParentGoesOn) {
  Group group(2);
  std::vector<float> in(2), out(2, 1.0f);
  leeway_work* work = nullptr;
  ASSERT_DONE(leeway_recv_async(group.ranks[0], output_of(in), 1, nullptr, &work));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    make_calls(group.ranks[0]);
    make_others(group.ranks[0]);
    std::size_t index = 0;
    EXPECT_EQ(leeway_work_done(work), 1);
    EXPECT_EQ(leeway_work_test(work), 1);
    EXPECT_FORKED(leeway_work_wait(work, nullptr));
    EXPECT_FORKED(leeway_work_wait_all(&work, 1));
    EXPECT_DONE(leeway_work_wait_any(&work, 1, &index));
    EXPECT_EQ(index, 0u);
    leeway_work_free(work);
    for (leeway_communicator*& one : group.ranks) {
      leeway_communicator_free(one);
      one = nullptr;
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int outcome = 0;
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
  EXPECT_DONE(leeway_send(group.ranks[1], input_of(out), 0, nullptr, nullptr));
  EXPECT_DONE(leeway_work_wait(work, nullptr));
  leeway_work_free(work);
}

}  // namespace
}  // namespace leeway::c_abi
