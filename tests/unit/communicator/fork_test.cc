// In the child of a fork, every public function must say "forked" or do nothing, and return at
// once. The parent's group must go on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "leeway/compute_budget.h"
#include "leeway/late_work.h"
#include "leeway/replica.h"
#include "unit/communicator/near_group.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;

// Objects of rank 0 that existed before the fork.
struct Held {
  std::vector<float> memory = std::vector<float>(1000, 1.0f);
  std::vector<float> parameters = std::vector<float>(1000);
  std::vector<float> in = std::vector<float>(10);
  std::vector<float> out = std::vector<float>(10, 1.0f);
  MemoryRegistration registration;
  Allocation allocation;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<ComputeBudget> budget;
  std::array<Work, 2> works;  // a message and a collective
  PendingCommunicator split;
  PendingCommunicator shrink;
};

void expect_forked(const char* name, const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << name << ": " << status.text();
  EXPECT_NE(std::string(status.text()).find("forked"), std::string::npos)
      << name << ": " << status.text();
}
template <typename T>
void expect_forked(const char* name, const Result<T>& result) {
  expect_forked(name, result.status());
}

#define EXPECT_FORKED(...) expect_forked(#__VA_ARGS__, __VA_ARGS__)

void make_collectives(Communicator& c) {
  std::vector<float> one(2, 1.0f), two(4);
  const std::span<float> data(one), twice(two);
  const std::span<const float> input(one), inputs(two);
  const std::array<std::size_t, 2> counts = {1, 1};
  const Blocks blocks(counts);
  EXPECT_FORKED(c.all_reduce(data));
  EXPECT_FORKED(c.all_reduce_async(data).wait());
  EXPECT_FORKED(c.all_reduce(input, data));
  EXPECT_FORKED(c.all_reduce_async(input, data).wait());
  EXPECT_FORKED(c.all_reduce(data, {.delivery = best_effort(1s)}));
  EXPECT_FORKED(c.reduce_scatter(inputs, data));
  EXPECT_FORKED(c.reduce_scatter_async(inputs, data).wait());
  EXPECT_FORKED(c.reduce_scatter(input, blocks, data.first(1)));
  EXPECT_FORKED(c.reduce_scatter_async(input, blocks, data.first(1)).wait());
  EXPECT_FORKED(c.all_gather(input, twice));
  EXPECT_FORKED(c.all_gather_async(input, twice).wait());
  EXPECT_FORKED(c.all_gather(inputs.first(1), data, blocks));
  EXPECT_FORKED(c.all_gather_async(inputs.first(1), data, blocks).wait());
  EXPECT_FORKED(c.broadcast(data, 0));
  EXPECT_FORKED(c.broadcast_async(data, 0).wait());
  EXPECT_FORKED(c.reduce(input, twice.first(2), 0));
  EXPECT_FORKED(c.reduce_async(input, twice.first(2), 0).wait());
  EXPECT_FORKED(c.gather(input, twice, 0));
  EXPECT_FORKED(c.gather_async(input, twice, 0).wait());
  EXPECT_FORKED(c.scatter(inputs, data, 0));
  EXPECT_FORKED(c.scatter_async(inputs, data, 0).wait());
  EXPECT_FORKED(c.all_to_all(input, twice.first(2)));
  EXPECT_FORKED(c.all_to_all_async(input, twice.first(2)).wait());
  EXPECT_FORKED(c.all_to_all(input, blocks, twice.first(2), blocks));
  EXPECT_FORKED(c.all_to_all_async(input, blocks, twice.first(2), blocks).wait());
  EXPECT_FORKED(c.barrier());
  EXPECT_FORKED(c.barrier_async().wait());
}

void make_messages(Communicator& c) {
  std::vector<float> values(2, 1.0f);
  const std::span<const float> input(values);
  const std::array group = {Message::send(input, 1), Message::recv(std::span(values), 1)};
  EXPECT_FORKED(c.send(input, 1));
  EXPECT_FORKED(c.send_async(input, 1).wait());
  EXPECT_FORKED(c.recv(std::span(values), 1));
  EXPECT_FORKED(c.recv_async(std::span(values), kAnyRank).wait());
  EXPECT_FORKED(c.exchange(group));
  EXPECT_FORKED(c.exchange_async(group).wait());
}

void make_others(Communicator& c) {
  const std::array<Rank, 1> excluded = {1};
  EXPECT_FORKED(c.split(0, 0));
  EXPECT_FORKED(c.split_async(0, 0).wait());
  EXPECT_FORKED(c.shrink(excluded));
  EXPECT_FORKED(c.shrink_async(excluded).wait());
  EXPECT_FORKED(c.shrink({}));
  EXPECT_FORKED(c.allocate(100));
  const std::vector<std::byte> memory(100);
  EXPECT_FORKED(c.register_memory(memory));
  std::vector<float> parameters(100);
  EXPECT_FORKED(Replica::create(c, parameters));
  EXPECT_FORKED(ComputeBudget::create(c, {.micro_batches = 2}));
}

void ask(const Communicator& c) {
  EXPECT_EQ(c.state(), StatusCode::kUnavailable);
  EXPECT_FORKED(c.status());
  EXPECT_FALSE(c.peer_left());
  EXPECT_EQ(c.rank(), 0u);
  EXPECT_EQ(c.size(), 2);
  EXPECT_EQ(c.options().world_size, 2);
  EXPECT_GT(c.datagram_bytes(), 0u);
  EXPECT_NE(c.transport(), TransportKind::automatic);
  EXPECT_TRUE(c.counters().empty());
}

void use(Held& held) {
  int called = 0;
  for (Work& work : held.works) {
    EXPECT_TRUE(work.done());
    EXPECT_TRUE(work.test());
    EXPECT_TRUE(work.wait_for(1h));
    work.on_done([&] { ++called; });
    EXPECT_FORKED(work.wait());
  }
  EXPECT_FORKED(Work::wait_all(held.works));
  EXPECT_EQ(Work::wait_any(held.works), 0u);
  for (PendingCommunicator* const pending : {&held.split, &held.shrink}) {
    EXPECT_TRUE(pending->done());
    pending->on_done([&] { ++called; });
    EXPECT_FORKED(pending->wait());
    pending->abort();
    *pending = PendingCommunicator();
  }
  EXPECT_EQ(called, 4);
  EXPECT_FORKED(held.replica->reduce_gradients(held.memory, {}));
  EXPECT_FORKED(held.replica->broadcast_parameters());
  EXPECT_FORKED(held.replica->synchronize());
  EXPECT_EQ(held.replica->drift().measurements, 0u);
  EXPECT_EQ(held.replica->owned().size(), held.replica->owned_count());
  EXPECT_FORKED(held.budget->synchronize());
  for (int step = 0; step < 100; ++step) {
    while (held.budget->next_micro_batch()) {
    }
  }
  EXPECT_FORKED(held.budget->status());
  held.registration.release();
  held.allocation = Allocation();
}

class Fork : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    if (GetParam() == TransportKind::shm && !check_memory().ok())
      GTEST_SKIP() << check_memory().c_str();
  }
};

TEST_P(Fork, TheChildGetsErrorsAndTheParentGoesOn) {
  Options options;
  options.rendezvous = "127.0.0.1:0";  // rank 0 is the server
  Group group = group_over(GetParam(), 2, options);
  std::array<Held, 2> held;
  on_each(2, [&](std::size_t rank) {
    Held& mine = held[rank];
    mine.registration = group[rank]->register_memory(std::as_bytes(std::span(mine.memory))).value();
    mine.allocation = group[rank]->allocate(4096).value();
    mine.replica = Replica::create(*group[rank], mine.parameters).value();
    mine.budget = ComputeBudget::create(*group[rank], {.micro_batches = 2}).value();
  });
  held[0].split = group[0]->split_async(0, 0);
  held[0].works = {group[0]->recv_async(std::span(held[0].in), 1),
                   group[0]->all_reduce_async(std::span(held[0].out))};
  held[0].shrink = group[0]->shrink_async({});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    make_collectives(*group[0]);
    make_messages(*group[0]);
    make_others(*group[0]);
    ask(*group[0]);
    use(held[0]);
    group[0]->notify_payload();
    group[0]->abort();
    held = {};
    group.clear();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int outcome = 0;
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
  auto part = group[1]->split_async(0, 0);
  EXPECT_TRUE(group[1]->send(std::span<const float>(held[1].out), 0).ok());
  EXPECT_TRUE(group[1]->all_reduce(std::span(held[1].out)).ok()) << "the parent goes on";
  auto rest = group[1]->shrink_async({});
  EXPECT_TRUE(Work::wait_all(held[0].works).ok());
  EXPECT_EQ(held[0].out.back(), 2.0f);
  for (PendingCommunicator* const made : {&held[0].split, &part, &held[0].shrink, &rest})
    EXPECT_TRUE(made->wait().ok());
}

INSTANTIATE_TEST_SUITE_P(Over, Fork, ::testing::Values(TransportKind::shm, TransportKind::udp),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace leeway::internal
