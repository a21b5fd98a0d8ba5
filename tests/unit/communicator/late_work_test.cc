// Tests which values late work adds to which shard, and with which weight: first with reports made
// by hand, then through a communicator and a replica that lose exactly the named packets.
#include "leeway/late_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>

#include "leeway/replica.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::size_t kShard = 64;  // elements: the least that an owner of an even split can have
constexpr std::size_t kCount = 3 * kShard;

// Returns a report for rank 1 of three ranks. It says that `owners` missed rank 1's contributions.
CollectiveReport missed_by(std::initializer_list<Rank> owners) {
  CollectiveReport report;
  report.owners = 3;
  for (const Rank peer : {0, 2}) {
    const bool missed = std::find(owners.begin(), owners.end(), peer) != owners.end();
    report.peers.push_back({.rank = peer, .missed = missed});
  }
  return report;
}

class LateWorkOfOneRank : public ::testing::Test {
 protected:
  // Adds late work to a gradient of `value` everywhere. Returns the options for reducing it.
  CollectiveOptions step(float value, double weight) {
    gradient_.assign(kCount, value);
    CollectiveOptions options{.op = ReduceOp::avg, .weight = weight};
    const Status status = late_.add_to(gradient_, options);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(options.confirm_use);
    return options;
  }
  std::vector<float> shard(Rank owner) const {
    return {gradient_.begin() + owner * kShard, gradient_.begin() + (owner + 1) * kShard};
  }
  void expect_shards(float first, float own, float last) const {
    EXPECT_THAT(shard(0), Each(first));
    EXPECT_THAT(shard(1), Each(own));
    EXPECT_THAT(shard(2), Each(last));
  }

  LateWork late_{kCount};
  std::vector<float> gradient_;
};

TEST_F(LateWorkOfOneRank, AddsNothingWhenNothingWasMissed) {
  EXPECT_TRUE(step(1, 3).owner_weights.empty());
  late_.keep(missed_by({}));
  EXPECT_TRUE(step(10, 4).owner_weights.empty());
  expect_shards(10, 10, 10);
  EXPECT_EQ(late_.statistics().missed, 0u);
}

TEST_F(LateWorkOfOneRank, CarriesWhatWasMissedToItsOwnerAloneAndWithItsWeight) {
  step(1, 3);
  late_.keep(missed_by({2}));
  EXPECT_THAT(step(10, 4).owner_weights, ElementsAre(4, 4, 7));
  expect_shards(10, 10, 11);
  EXPECT_EQ(late_.statistics().missed, 1u);
  EXPECT_EQ(late_.statistics().carried, 1u);
  EXPECT_EQ(late_.statistics().elements_carried, kShard);
  EXPECT_EQ(late_.statistics().weight_carried, 3.0);
}

TEST_F(LateWorkOfOneRank, WhatIsMissedAgainIsDroppedAndTheFreshPartCarried) {
  step(1, 3);
  late_.keep(missed_by({0, 2}));
  step(10, 4);
  late_.keep(missed_by({0}));
  EXPECT_THAT(step(100, 5).owner_weights, ElementsAre(9, 5, 5));
  expect_shards(110, 100, 100);
  EXPECT_EQ(late_.statistics().missed, 3u);
  EXPECT_EQ(late_.statistics().carried, 3u);
  EXPECT_EQ(late_.statistics().dropped, 1u);
  late_.keep(missed_by({}));
  EXPECT_TRUE(step(1000, 5).owner_weights.empty());
  expect_shards(1000, 1000, 1000);
}

TEST_F(LateWorkOfOneRank, NothingIsCarriedFromACallThatWasNotReported) {
  step(1, 3);
  late_.keep(missed_by({0}));
  step(10, 4);  // and fails
  EXPECT_TRUE(step(100, 5).owner_weights.empty());
  expect_shards(100, 100, 100);
}

TEST_F(LateWorkOfOneRank, GoesOutAloneWhereNothingNewWasFinished) {
  step(1, 3);
  late_.keep(missed_by({0}));
  EXPECT_THAT(step(std::nanf(""), 0).owner_weights, ElementsAre(3, 0, 0));
  EXPECT_THAT(shard(0), Each(1.0f));
}

// A tensor of one datagram has one owner, and another one in the next call. No flow of the next
// call carries the elements that the first owner missed.
TEST_F(LateWorkOfOneRank, IsDroppedWhereOwnersChange) {
  step(1, 3);
  CollectiveReport report = missed_by({0});
  report.owners = 1;
  late_.keep(report);
  EXPECT_TRUE(step(10, 3).owner_weights.empty());
  expect_shards(10, 10, 10);
  EXPECT_EQ(late_.statistics().missed, 1u);
  EXPECT_EQ(late_.statistics().carried, 0u);
  EXPECT_EQ(late_.statistics().dropped, 1u);
}

TEST_F(LateWorkOfOneRank, OfNoUnitsIsNotCarried) {
  step(std::nanf(""), 0);
  late_.keep(missed_by({0, 2}));
  EXPECT_TRUE(step(10, 4).owner_weights.empty());
  expect_shards(10, 10, 10);
}

TEST_F(LateWorkOfOneRank, KeepsItsWeightsInOptionsThatAreUsedAgain) {
  CollectiveOptions options{.op = ReduceOp::avg, .weight = 2};
  gradient_.assign(kCount, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(late_.add_to(gradient_, options).ok());
    late_.keep(missed_by({0}));
  }
  EXPECT_THAT(options.owner_weights, ElementsAre(4, 2, 2));
}

TEST_F(LateWorkOfOneRank, RefusesWhatHasNoWeightOrAnotherSize) {
  std::vector<float> gradient(kCount, 1.0f);
  const auto refused = [&](CollectiveOptions options, std::span<float> values, const char* word) {
    const Status status = late_.add_to(values, options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.text().find(word), std::string_view::npos) << status.text();
    EXPECT_FALSE(options.confirm_use);
  };
  const double weights[] = {1, 1, 1};
  refused({.op = ReduceOp::sum}, gradient, "sum");
  refused({.op = ReduceOp::avg}, std::span(gradient).first(1), "made for");
  refused({.op = ReduceOp::avg, .owner_weights = weights}, gradient, "owner_weights");
}

// Runs `work` on two ranks that lose the packets in `list`.
void on_two_ranks(const char* list, const std::function<void(Communicator&)>& work) {
  Options options;
  options.faults.list = list;
  auto group = Communicator::create_inproc(2, options);
  ASSERT_TRUE(group.ok());
  std::vector<std::thread> threads;
  for (auto& communicator : *group) threads.emplace_back([&] { work(*communicator); });
  for (auto& thread : threads) thread.join();
}

CollectiveOptions averaged(const Communicator& communicator) {
  return {.op = ReduceOp::avg, .delivery = best_effort(20s), .weight = communicator.rank() + 1.0};
}

// Tests look at one element of each half. Three datagrams of 8,972 bytes let both ranks own a shard
// in every call, which late work needs.
constexpr std::size_t kTensor = 5000;

TEST(LateWorkThroughACommunicator, ReachesTheOwnerThatMissedItOneRoundLater) {
  on_two_ranks("1>0/0/0/*", [](Communicator& communicator) {
    LateWork late(kTensor);
    const float unit =
        communicator.rank() == 0 ? 1.0f : 5.0f;  // value of one unit of work in the first step
    std::vector<std::vector<float>> results;
    for (const float factor : {1.0f, 10.0f, 100.0f}) {
      CollectiveOptions options = averaged(communicator);
      std::vector<float> gradient(kTensor, factor * unit * static_cast<float>(options.weight));
      ASSERT_TRUE(late.add_to(gradient, options).ok());
      const auto report = communicator.all_reduce(std::span(gradient), options);
      ASSERT_TRUE(report.ok()) << report.status().text();
      late.keep(*report);
      results.push_back(gradient);
    }
    EXPECT_FLOAT_EQ(results[0].front(), 1.0f) << "rank 0 alone";
    EXPECT_FLOAT_EQ(results[0].back(), 11.0f / 3);
    EXPECT_FLOAT_EQ(results[1].front(), (10.0f + 100.0f + 10.0f) / (1 + 2 + 2))
        << "with what was missed";
    EXPECT_FLOAT_EQ(results[1].back(), 110.0f / 3);
    EXPECT_FLOAT_EQ(results[2].front(), 1100.0f / 3) << "once";
    EXPECT_EQ(late.statistics().carried, communicator.rank());
  });
}

TEST(LateWorkThroughAReplica, ReachesTheOwnerThatMissedItOneRoundLater) {
  on_two_ranks("0>1/0/0/*", [](Communicator& communicator) {
    std::vector<float> parameters(kTensor, 0.0f);
    auto replica = Replica::create(communicator, parameters);
    ASSERT_TRUE(replica.ok());
    LateWork late(kTensor);
    std::vector<float> own;
    for (int step = 0; step < 2; ++step) {
      CollectiveOptions options = averaged(communicator);
      std::vector<float> gradient(kTensor, 6.0f * static_cast<float>((step + 1) * options.weight));
      ASSERT_TRUE(late.add_to(gradient, options).ok());
      const auto report = (*replica)->reduce_gradients(gradient, options);
      ASSERT_TRUE(report.ok()) << report.status().text();
      late.keep(*report);
      own.push_back(gradient[(*replica)->owned_offset()]);
      ASSERT_TRUE((*replica)->broadcast_parameters().ok());
    }
    EXPECT_FLOAT_EQ(own[0], 6.0f);
    EXPECT_FLOAT_EQ(own[1], communicator.rank() == 0 ? 12.0f : (6.0f + 36.0f) / 4);
    EXPECT_EQ(late.statistics().carried, 1u - communicator.rank());
  });
}

}  // namespace
}  // namespace leeway
