// The estimators Horvitz-Thompson and augmented need at least one packet of every contribution. An
// owner that got nothing of a contribution asks for it again, and its report tells the outcome.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "support/datagram_view.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::data_header_of;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kFetchingRanks = 3;
constexpr std::size_t kFetchedElements = 352;  // elements in a datagram of 1472 bytes

struct FetchedSetting {
  Estimator estimator = Estimator::horvitz_thompson;
  OperationKind operation = OperationKind::reduce_scatter;
  std::size_t packets = 4;  // packets of each contribution to each owner
  Delivery delivery = best_effort(10s);
};

// Rank r contributes r + 1 everywhere; the loss-free sum is 6.
class Reduction {
 public:
  explicit Reduction(const FetchedSetting& setting)
      : setting_(setting), group(GroupOptions{.size = kFetchingRanks}) {
    for (int rank = 0; rank < kFetchingRanks; ++rank) {
      inputs_[rank].assign(kFetchingRanks * setting.packets * kFetchedElements, rank + 1.0f);
      results[rank].resize(inputs_[rank].size() / (scattered() ? kFetchingRanks : 1));
    }
    group.filter = [this](Rank from, Rank to, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      const bool watched = header && header->kind == wire::FlowKind::reduce && from == 1 && to == 0;
      return !watched || !loses(*header);
    };
  }

  void run() {
    requests_ = group.submit_all([this](Rank rank) {
      OperationSpec spec{.kind = setting_.operation,
                         .input = std::span(std::as_const(inputs_[rank])),
                         .output = std::span(results[rank])};
      spec.options.delivery = setting_.delivery;
      spec.options.estimator = setting_.estimator;
      return spec;
    });
    ASSERT_TRUE(group.run(requests_));
    for (const Request* request : requests_)
      ASSERT_TRUE(request->status.ok()) << request->status.text();
  }
  const CollectiveReport& report(Rank rank) const { return requests_[rank]->report; }
  std::uint64_t requests_made() {
    std::uint64_t made = 0;
    for (Rank rank = 0; rank < kFetchingRanks; ++rank)
      made += group.engine(rank).endpoint().counters().repair_requests;
    return made;
  }

 private:
  bool scattered() const { return setting_.operation == OperationKind::reduce_scatter; }

  FetchedSetting setting_;
  std::array<std::vector<float>, kFetchingRanks> inputs_;
  std::vector<Request*> requests_;

 public:
  EngineGroup group;
  std::array<std::vector<float>, kFetchingRanks> results;
  // Chooses the packets of rank 1's contribution to rank 0 that the network loses.
  std::function<bool(const wire::DataHeader&)> loses = [](const wire::DataHeader& header) {
    return header.attempt == 0;
  };
};

TEST(FetchedContributions, AnOwnerAsksAgainForOneOfWhichNothingCame) {
  for (const Estimator estimator : {Estimator::horvitz_thompson, Estimator::augmented}) {
    for (const OperationKind operation : {OperationKind::all_reduce, OperationKind::reduce_scatter,
                                          OperationKind::replica_reduce}) {
      Reduction reduction({.estimator = estimator, .operation = operation});
      reduction.run();
      EXPECT_EQ(reduction.report(0).contributions_fetched, 1u);
      EXPECT_EQ(reduction.report(1).contributions_fetched, 0u);
      EXPECT_EQ(reduction.report(0).contributions_missing, 0u);
      EXPECT_FALSE(reduction.report(0).deadline_cut);
      EXPECT_EQ(reduction.results[0][0], 6.0f);
    }
  }
}

TEST(FetchedContributions, AllOfItIsAskedForUntilItIsWhole) {
  Reduction reduction({});
  reduction.loses = [](const wire::DataHeader& header) {
    return header.attempt <= header.index.value;
  };
  reduction.run();
  EXPECT_EQ(reduction.report(0).peers[0].repaired, 4u);
}

TEST(FetchedContributions, OnePacketIsEnoughToAskForNothing) {
  Reduction reduction({});
  reduction.loses = [](const wire::DataHeader& header) { return header.index.value != 2; };
  reduction.run();
  EXPECT_EQ(reduction.requests_made(), 0u);
  EXPECT_EQ(reduction.report(0).contributions_fetched, 0u);
  EXPECT_EQ(reduction.results[0][2 * kFetchedElements], 1.0f + 4 * 2.0f + 3.0f);
}

TEST(FetchedContributions, OtherEstimatorsGoOnWithoutIt) {
  for (const Estimator estimator : {Estimator::zero_fill, Estimator::ratio, Estimator::stratified,
                                    Estimator::symmetric_ratio}) {
    Reduction reduction({.estimator = estimator});
    reduction.run();
    EXPECT_EQ(reduction.requests_made(), 0u) << to_string(estimator);
    EXPECT_EQ(reduction.report(0).contributions_missing, 1u) << to_string(estimator);
  }
}

// Only an all_reduce asks again for a long contribution. In other operations, senders would have to
// keep the data of long flows until their owners confirmed them.
TEST(FetchedContributions, LongOnesAreFetchedByAllReducesOnly) {
  Reduction scatter({.packets = estimate::kShortFlowPackets});
  scatter.run();
  EXPECT_EQ(scatter.requests_made(), 0u);
  EXPECT_EQ(scatter.report(0).contributions_missing, 1u);
  Reduction all(
      {.operation = OperationKind::all_reduce, .packets = 2 * estimate::kShortFlowPackets});
  all.run();
  EXPECT_EQ(all.report(0).contributions_fetched, 1u);
  EXPECT_EQ(all.results[2][0], 6.0f);
}

TEST(FetchedContributions, CallersDoNotWaitLongerForThePossibility) {
  for (const std::size_t packets : {1u, 30u}) {
    std::array<Duration, 2> total;
    for (const bool fetches : {false, true}) {
      Reduction reduction({.estimator = fetches ? Estimator::augmented : Estimator::symmetric_ratio,
                           .packets = packets});
      reduction.loses = [](const wire::DataHeader&) { return false; };
      reduction.run();
      total[fetches] = reduction.report(0).times.total;
    }
    EXPECT_EQ(total[0], total[1]) << packets << " packets";
  }
}

TEST(FetchedContributions, TheDeadlineEndsTheAsking) {
  Reduction reduction({.delivery = best_effort(5ms)});
  reduction.loses = [](const wire::DataHeader&) { return true; };
  reduction.run();
  EXPECT_TRUE(reduction.report(0).deadline_cut);
  EXPECT_EQ(reduction.report(0).contributions_missing, 1u);
  EXPECT_EQ(reduction.report(0).contributions_fetched, 0u);
  EXPECT_EQ(reduction.results[0][0], 4.0f);
  // After this loss, rank 1's short contributions are expected in nine calls of ten. So what comes
  // of them is weighted by 1/0.9.
  reduction.loses = [](const wire::DataHeader&) { return false; };
  reduction.run();
  EXPECT_FLOAT_EQ(reduction.results[0][0], 1.0f + 2.0f / 0.9f + 3.0f);
  EXPECT_EQ(reduction.results[2][0], 6.0f) << "where nothing was ever cut";
}

}  // namespace
}  // namespace leeway::collective
