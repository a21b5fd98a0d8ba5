// Tests Replica over in-process transports. Drift formulas are tested in tests/unit/estimate and,
// over many rounds, in tests/sim.
#include "leeway/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace leeway {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  std::vector<float> parameters;
  DriftReport drift;
};

// Makes `steps` training steps on every rank. Each owner adds 1 to its parameters, and all
// broadcast.
std::vector<Outcome> run(int size, std::size_t count, double loss, int steps,
                         const ReplicaOptions& options) {
  Options group_options;
  group_options.datagram_bytes = 1472;
  group_options.faults.loss = loss;
  auto group = Communicator::create_inproc(size, group_options);
  EXPECT_TRUE(group.ok());
  std::vector<Outcome> outcomes(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& outcome = outcomes[rank];
      outcome.parameters.assign(count, 0.0f);
      auto replica = Replica::create(*(*group)[rank], outcome.parameters, options);
      ASSERT_TRUE(replica.ok()) << replica.status().text();
      for (int step = 0; step < steps; ++step) {
        for (float& value : (*replica)->owned()) value += 1.0f;
        const auto report = (*replica)->broadcast_parameters();
        ASSERT_TRUE(report.ok()) << report.status().text();
      }
      outcome.drift = (*replica)->drift();
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

TEST(Replica, WithoutLossAllReplicasAreEqual) {
  for (const Outcome& outcome : run(3, 5000, 0.0, 20, {})) {
    EXPECT_THAT(outcome.parameters, ::testing::Each(20.0f));
    EXPECT_EQ(outcome.drift.age_max_seen, 0u);
    EXPECT_EQ(outcome.drift.pair_measured, 0.0);
  }
}

// Blocks are overdue on rank 1 and not on rank 0. Both must measure the drift in the same steps;
// otherwise they would make different calls from then on.
TEST(Replica, RanksWhoseBroadcastsEndDifferentlyStayInStep) {
  Options losing;
  losing.faults.link_loss = {1.0, 0.0};  // rank 1 hears nothing from rank 0
  auto group = Communicator::create_inproc(2, losing);
  ASSERT_TRUE(group.ok());
  std::array<std::uint64_t, 2> calls{};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator& communicator = *(*group)[static_cast<std::size_t>(rank)];
      std::vector<float> parameters(1000);
      auto replica = Replica::create(communicator, parameters,
                                     {.age_max = 1, .deadline = 20ms, .drift_every = 1});
      ASSERT_TRUE(replica.ok()) << replica.status().text();
      for (int step = 0; step < 4; ++step) (void)(*replica)->broadcast_parameters();
      for (const auto& [name, count] : communicator.counters()) {
        if (name == "rounds_opened") calls[static_cast<std::size_t>(rank)] = count;
      }
      communicator.abort();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(calls[0], 8u);
  EXPECT_EQ(calls[1], 8u);
}

TEST(Replica, MayEndAfterItsCommunicator) {
  auto group = Communicator::create_inproc(1);
  std::vector<float> parameters(100);
  auto replica = Replica::create(*(*group)[0], parameters);
  ASSERT_TRUE(replica.ok());
  group->clear();
}

TEST(Replica, SaysThatItsCommunicatorIsGone) {
  auto group = Communicator::create_inproc(1, {});
  ASSERT_TRUE(group.ok());
  std::vector<float> parameters(100);
  auto replica = Replica::create(*group->front(), parameters);
  ASSERT_TRUE(replica.ok());
  group->clear();
  EXPECT_EQ((*replica)->broadcast_parameters().status().code(), StatusCode::kCancelled);
  EXPECT_EQ((*replica)->reduce_gradients(parameters, {}).status().code(), StatusCode::kCancelled);
  EXPECT_EQ((*replica)->synchronize().status().code(), StatusCode::kCancelled);
  EXPECT_EQ((*replica)->owned_count(), 100u);
}

// Steps of 2^-10 from 1 on are below bfloat16's resolution of 2^-7, so only a master copy can add
// them up.
TEST(Replica, StepsSmallerThanTheCodecsResolutionAddUp) {
  constexpr int kSteps = 128;
  auto group = Communicator::create_inproc(2);
  ASSERT_TRUE(group.ok());
  std::vector<std::vector<float>> parameters(2, std::vector<float>(1000, 1.0f));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto replica = Replica::create(*(*group)[rank], parameters[rank],
                                     {.delivery = Delivery::Kind::exact, .codec = Codec::bf16});
      ASSERT_TRUE(replica.ok()) << replica.status().text();
      for (int step = 0; step < kSteps; ++step) {
        for (float& value : (*replica)->owned()) value += 0x1p-10f;
        ASSERT_TRUE((*replica)->broadcast_parameters().ok());
      }
      EXPECT_EQ((*replica)->owned()[0], 1.0f + kSteps * 0x1p-10f);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(parameters[0], ::testing::Each(1.125f));
  EXPECT_EQ(parameters[0], parameters[1]);
}

TEST(Replica, RefusesCodecsThatAreNotForCopies) {
  auto group = Communicator::create_inproc(1);
  ASSERT_TRUE(group.ok());
  std::vector<float> parameters(10);
  const auto automatic = Replica::create(*(*group)[0], parameters, {.codec = Codec::automatic});
  ASSERT_FALSE(automatic.ok());
  EXPECT_NE(automatic.status().text().find("automatic"), std::string_view::npos);
  CodecOptions wrong(Codec::nvfp4);
  wrong.draws = 2;
  EXPECT_FALSE(Replica::create(*(*group)[0], parameters, {.codec = wrong}).ok());
}

TEST(Replica, ExactDeliveryKeepsReplicasEqualUnderLoss) {
  ReplicaOptions options;
  options.delivery = Delivery::Kind::exact;
  for (const Outcome& outcome : run(3, 5000, 0.2, 10, options)) {
    EXPECT_THAT(outcome.parameters, ::testing::Each(10.0f));
  }
}

TEST(Replica, StaleValuesAreOldOnesAndNeverOlderThanTheCap) {
  ReplicaOptions options;
  options.age_max = 3;
  constexpr int kSteps = 60;
  for (const Outcome& outcome : run(3, 30'000, 0.4, kSteps, options)) {
    EXPECT_LE(outcome.drift.age_max_seen, 3u);
    EXPECT_GT(outcome.drift.blocks_refreshed, 0u);
    for (float value : outcome.parameters) {
      ASSERT_GE(value, kSteps - 3);
      ASSERT_LE(value, kSteps);
    }
    EXPECT_NEAR(outcome.drift.loss, 0.4, 0.02);
  }
}

TEST(Replica, SynchronizeMakesReplicasEqual) {
  Options group_options;
  group_options.faults.loss = 0.3;
  group_options.datagram_bytes = 1472;
  auto group = Communicator::create_inproc(2, group_options);
  ASSERT_TRUE(group.ok());
  std::vector<std::vector<float>> parameters = {std::vector<float>(10'000, 1.0f),
                                                std::vector<float>(10'000, 2.0f)};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto replica = Replica::create(*(*group)[rank], parameters[rank]);
      ASSERT_TRUE(replica.ok());
      ASSERT_TRUE((*replica)->synchronize().ok());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(parameters[0], parameters[1]);
}

TEST(Replica, ReducesGradientsIntoTheOwnedShard) {
  auto group = Communicator::create_inproc(4);
  ASSERT_TRUE(group.ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> parameters(1000, 0.0f);
      std::vector<float> gradient(1000, static_cast<float>(rank));
      auto replica = Replica::create(*(*group)[rank], parameters);
      ASSERT_TRUE(replica.ok());
      CollectiveOptions options;
      options.op = ReduceOp::avg;
      options.delivery = best_effort(5s);
      ASSERT_TRUE((*replica)->reduce_gradients(gradient, options).ok());
      const std::size_t first = (*replica)->owned_offset();
      for (std::size_t i = 0; i < 1000; ++i) {
        const bool owned = i >= first && i < first + (*replica)->owned_count();
        ASSERT_EQ(gradient[i], owned ? 1.5f : static_cast<float>(rank)) << i;
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Replica, BadArgumentsAreRefused) {
  auto group = Communicator::create_inproc(1);
  ASSERT_TRUE(group.ok());
  std::vector<float> parameters(10);
  EXPECT_FALSE(Replica::create(*(*group)[0], {}).ok());
  ReplicaOptions options;
  options.age_max = 256;
  EXPECT_FALSE(Replica::create(*(*group)[0], parameters, options).ok());
  auto replica = Replica::create(*(*group)[0], parameters);
  ASSERT_TRUE(replica.ok());
  std::vector<float> gradient(9);
  const auto report = (*replica)->reduce_gradients(gradient, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leeway
