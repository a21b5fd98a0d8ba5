// Stand-ins hold the places of collectives that may come later. Later collectives must not wait for
// them.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "support/engine_group.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

OperationSpec sum_of(std::vector<float>& values, const Delivery& delivery = exact(no_deadline)) {
  OperationSpec spec{.kind = OperationKind::all_reduce,
                     .input = std::span<const float>(values),
                     .output = std::span(values)};
  spec.options.delivery = delivery;
  return spec;
}

OperationSpec holding(OperationSpec spec) {
  spec.stands_in = true;
  spec.options.delivery.deadline = no_deadline;
  return spec;
}

// Three ranks. Each has a tensor for each of several places in the order of calls.
class StandIn : public ::testing::Test {
 protected:
  static constexpr std::size_t kElements = 20'000;

  StandIn() : group_(options()) {
    for (auto& places : values_) {
      for (std::size_t place = 0; place < places.size(); ++place)
        places[place].assign(kElements, static_cast<float>(place + 1));
    }
  }
  static GroupOptions options() {
    GroupOptions options{.size = 3};
    options.faults.loss = 0.1;
    return options;
  }
  std::vector<float>& values(Rank rank, std::uint64_t place) { return values_[rank][place]; }
  Request* start(Rank rank, std::uint64_t place, const Delivery& delivery = exact(no_deadline)) {
    return &group_.submit(rank, sum_of(values(rank, place), delivery), place);
  }
  Request* hold(Rank rank, std::uint64_t place) {
    return &group_.submit(rank, holding(sum_of(values(rank, place))), place);
  }
  void end(Rank rank, Request* stand_in) { group_.engine(rank).end(group_.now(), *stand_in, {}); }
  void expect_sum(Rank rank, std::uint64_t place) {
    for (const float value : values(rank, place))
      ASSERT_EQ(value, 3.0f * static_cast<float>(place + 1)) << "place " << place;
  }

  EngineGroup group_;
  std::array<std::array<std::vector<float>, 32>, 3> values_;
};

TEST_F(StandIn, ACallReplacesItAfterLaterOnesAreOver) {
  Request* const held = hold(0, 0);
  std::vector<Request*> first = {start(1, 0), start(2, 0)};
  std::vector<Request*> second;
  for (Rank rank = 0; rank < 3; ++rank) second.push_back(start(rank, 1));
  ASSERT_TRUE(group_.run(second, 1s));
  EXPECT_FALSE(held->done || first[0]->done || first[1]->done);
  first.push_back(start(0, 0));
  EXPECT_TRUE(held->done && held->status.ok());
  ASSERT_TRUE(group_.run(first, 1s));
  for (Rank rank = 0; rank < 3; ++rank) {
    expect_sum(rank, 0);
    expect_sum(rank, 1);
  }
  EXPECT_TRUE(group_.settle());
}

// No room is left for further rounds, so calls wait. A call that replaces a stand-in uses the
// stand-in's room and does not wait.
TEST_F(StandIn, ACallReplacesItBeforeThoseThatWaitForRoom) {
  constexpr std::uint64_t kLast = limits::kOpenCollectivesMax + 2;
  std::vector<Request*> held;
  for (std::uint64_t place = 0; place < kLast; ++place) held.push_back(hold(0, place));
  std::vector<Request*> last = {start(0, kLast)};
  std::vector<Request*> first = {start(0, 0), start(1, 0), start(2, 0)};
  ASSERT_TRUE(group_.run(first, 1s));
  expect_sum(0, 0);
  // The stand-in for place kLast - 1 still waits for room. The call takes its place in the queue.
  std::vector<Request*> queued = {start(0, kLast - 1), start(1, kLast - 1), start(2, kLast - 1)};
  EXPECT_TRUE(held.back()->done);
  for (std::uint64_t place = 1; place + 1 < kLast; ++place) end(0, held[place]);
  ASSERT_TRUE(group_.run(queued, 1s));
  last.insert(last.end(), {start(1, kLast), start(2, kLast)});
  ASSERT_TRUE(group_.run(last, 1s));
  for (Rank rank = 0; rank < 3; ++rank) {
    expect_sum(rank, kLast - 1);
    expect_sum(rank, kLast);
  }
  EXPECT_TRUE(group_.settle());
}

TEST_F(StandIn, HearsThatRanksDiffer) {
  Request* const held = hold(0, 0);
  const std::vector<Request*> others = {start(1, 0, best_effort(1s)), start(2, 0, best_effort(1s))};
  ASSERT_TRUE(group_.run(others, 500ms));
  EXPECT_EQ(held->status.code(), StatusCode::kMismatch);
  for (const Request* other : others) EXPECT_EQ(other->status.code(), StatusCode::kMismatch);
  std::vector<Request*> next;
  for (Rank rank = 0; rank < 3; ++rank) next.push_back(start(rank, 1));
  ASSERT_TRUE(group_.run(next, 1s));
  expect_sum(0, 1);
  EXPECT_TRUE(group_.settle());
}

// Each rank first holds some places. Later it starts the calls there, which other ranks started at
// once. Or all ranks end the stand-ins, because those calls went another way. Each rank does this
// in an order of its own.
TEST_F(StandIn, AnyMixtureIsRight) {
  for (int seed = 0; seed < testing::seeds(20, 2'000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    GroupOptions options{.size = 2 + static_cast<int>(random() % 3), .seed = random() % 1000};
    options.faults.loss = one_in(3) ? 0.3 : 0.0;
    options.paced = one_in(3);
    EngineGroup group(options);
    struct Part {
      std::vector<float> values;
      Request* held = nullptr;
      Request* call = nullptr;
    };
    constexpr std::size_t kPlaces = 12;
    std::vector<std::array<Part, kPlaces>> parts(static_cast<std::size_t>(options.size));
    std::array<bool, kPlaces> goes_on;
    for (bool& one : goes_on) one = !one_in(3);
    std::vector<Request*> requests;
    const auto start_at = [&](Rank rank, std::size_t place) {
      Part& part = parts[rank][place];
      part.call = &group.submit(rank, sum_of(part.values), place);
      requests.push_back(part.call);
    };
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const std::size_t elements = 1 + random() % (one_in(3) ? 60'000 : 100);
      for (Rank rank = 0; rank < options.size; ++rank) {
        Part& part = parts[rank][place];
        part.values.assign(elements, 1.0f);
        if (goes_on[place] && one_in(2)) {
          start_at(rank, place);
        } else if (goes_on[place] || one_in(2)) {
          part.held = &group.submit(rank, holding(sum_of(part.values)), place);
        }
      }
      if (one_in(2))
        group.run_until([] { return false; }, std::chrono::microseconds(random() % 500));
    }
    for (Rank rank = 0; rank < options.size; ++rank) {
      std::array<std::size_t, kPlaces> order;
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t place : order) {
        const Part& part = parts[rank][place];
        if (part.held == nullptr) continue;
        if (goes_on[place]) {
          start_at(rank, place);
        } else {
          group.engine(rank).end(group.now(), *part.held, {});
        }
        if (one_in(3))
          group.run_until([] { return false; }, std::chrono::microseconds(random() % 900));
      }
    }
    ASSERT_TRUE(group.run(requests, 20s));
    for (const auto& places : parts) {
      for (const Part& part : places) {
        ASSERT_TRUE(part.held == nullptr || (part.held->done && part.held->status.ok()));
        if (part.call == nullptr) continue;
        ASSERT_TRUE(part.call->status.ok()) << part.call->status.c_str();
        for (const float value : part.values) ASSERT_EQ(value, static_cast<float>(options.size));
      }
    }
    ASSERT_TRUE(group.settle());
  }
}

}  // namespace
}  // namespace leeway::collective
