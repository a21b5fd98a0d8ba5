// Mistakes in the public code of OptiReduce, the closest competitor. Each test shows that Leeway
// does not make one of them. Those that need real processes, sockets or routes are integration
// tests.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/arrival_record.h"
#include "support/datagram_view.h"
#include "support/float_all_reduce.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using protocol::FlowKind;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;

GroupOptions lossy_network(int size, double loss, std::uint64_t seed = 1) {
  GroupOptions options{.size = size, .seed = seed};
  options.faults.loss = loss;
  options.faults.seed = seed;
  return options;
}

// "Missing contributions count as zero." Here the sum of an unbiased estimator, averaged over seeds
// and divided by the true sum, is within 4 standard errors of 1 at every loss.
TEST(CompetitorMistake, MissingContributionsCountAsZero) {
  for (const double loss : {0.01, 0.05, 0.2}) {
    double sum = 0, squares = 0;
    constexpr int kRuns = testing::seeds(100, 300);
    for (int run = 0; run < kRuns; ++run) {
      EngineGroup group(lossy_network(4, loss, 100u + run));
      std::array<std::vector<float>, 4> data;
      const auto requests = group.submit_all([&](Rank rank) {
        data[rank].assign(12000, static_cast<float>(1 + rank * rank));
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = std::span(data[rank]);
        spec.output = std::span(data[rank]);
        spec.options.delivery = best_effort(10s);
        spec.options.estimator = Estimator::horvitz_thompson;
        return spec;
      });
      EXPECT_TRUE(group.run(requests));
      double total = 0;
      for (const float value : data[0]) total += value;
      const double ratio = total / (12000.0 * (1 + 2 + 5 + 10));
      sum += ratio;
      squares += ratio * ratio;
    }
    const double mean = sum / kRuns;
    const double standard_error = std::sqrt(std::max(squares / kRuns - mean * mean, 0.0) / kRuns);
    EXPECT_NEAR(mean, 1.0, 4 * standard_error + 1e-6) << "loss " << loss;
    EXPECT_LT(standard_error, 0.2 * loss + 1e-6) << "the test can tell a shrunken sum";
  }
}

// "Only a byte count of what is missing is kept." Every packet's contributors are known: ranks
// contribute powers of 2, so the result without its scale tells which ranks contributed. They must
// be those whose packets the network did not drop.
TEST(CompetitorMistake, OnlyABytecountOfWhatIsMissing) {
  EngineGroup group(lossy_network(4, 0.3));
  testing::ArrivalRecord record(group);
  std::array<std::vector<float>, 4> data;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(40000, static_cast<float>(1 << rank));
    OperationSpec spec{.kind = OperationKind::replica_reduce};
    spec.input = std::span(data[rank]);
    spec.output = std::span(data[rank]);
    spec.options.delivery = best_effort(10s);
    spec.options.estimator = Estimator::zero_fill;
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  const auto shards = schedule::ShardMap::even(40000, 4);
  for (Rank owner = 0; owner < 4; ++owner) {
    for (std::size_t i = 0; i < shards[owner].count; ++i) {
      int expected = 1 << owner;
      for (Rank from = 0; from < 4; ++from) {
        if (from == owner) continue;
        const auto index = static_cast<std::uint32_t>(i / 352);
        expected |= record.arrived(0, FlowKind::reduce, from, owner, index) << from;
      }
      ASSERT_EQ(data[owner][shards[owner].offset + i], static_cast<float>(expected))
          << "owner " << owner << ", " << i;
    }
  }
}

// "A reduced chunk that does not arrive keeps the local value": replicas diverge silently. Here the
// spread is exact unless asked otherwise, and if asked, what is missing is reported.
TEST(CompetitorMistake, AReducedChunkThatIsLostDivergesSilently) {
  for (const bool lossy_spread : {false, true}) {
    EngineGroup group(lossy_network(4, 0.2));
    std::array<std::vector<float>, 4> data;
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(40000, static_cast<float>(rank));
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = std::span(data[rank]);
      spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(10s);
      if (lossy_spread) spec.options.spread = Delivery::Kind::best_effort;
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    for (Rank rank = 0; rank < 4; ++rank) {
      const CollectiveReport& report = requests[rank]->report;
      if (lossy_spread) {
        EXPECT_FALSE(report.complete);
        EXPECT_GT(report.elements_missing, 0u);
      } else {
        EXPECT_TRUE(report.complete);
        EXPECT_EQ(data[rank], data[0]);
      }
    }
  }
}

// "Duplicates are counted twice, counters underflow, `== 0` is missed." Here duplicates change
// nothing.
TEST(CompetitorMistake, DuplicatesCountTwiceAndCompletionIsMissed) {
  GroupOptions plain{.size = 3};
  EngineGroup quiet(plain);
  FloatAllReduce reference(3, 30000, best_effort(10s));
  reference.submit_all(quiet);
  ASSERT_TRUE(reference.finish(quiet));

  GroupOptions noisy{.size = 3};
  noisy.faults.duplicate = 0.5;
  noisy.faults.reorder = 0.5;
  EngineGroup group(noisy);
  FloatAllReduce call(3, 30000, best_effort(10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests(), 100ms)) << "completion is seen";
  for (Rank rank = 0; rank < 3; ++rank) {
    for (const PeerReport& row : call.report(rank).peers) EXPECT_LE(row.arrived, row.expected);
    EXPECT_GE(call.report(rank).loss, 0.0);
  }
}

// "Early exit is never taken": an integer division made it dead code. Here a lossy call does not
// wait for a flow's last packets once it has nearly all of them and the END.
TEST(CompetitorMistake, EarlyExitIsNeverTaken) {
  EngineGroup group(GroupOptions{.size = 4});
  group.filter = [](Rank, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    return !(header && header->kind == FlowKind::reduce && header->index.value == 1);
  };
  FloatAllReduce call(4, 100000, best_effort(10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests()));
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_LT(call.report(rank).times.total, 5ms);
    EXPECT_FALSE(call.report(rank).deadline_cut);
  }
}

// "Division by zero when nothing came; all or nothing breaks the rule for timeouts." Here values
// stay finite.
TEST(CompetitorMistake, NothingArrivedDividesByZero) {
  for (const Estimator estimator :
       {Estimator::zero_fill, Estimator::ratio, Estimator::symmetric_ratio, Estimator::stratified,
        Estimator::horvitz_thompson, Estimator::augmented}) {
    EngineGroup group(GroupOptions{.size = 3});
    group.filter = [](Rank, Rank, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      return !(header && header->kind == FlowKind::reduce);
    };
    std::array<std::vector<float>, 3> data;
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(3000, 2.0f);
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = std::span(data[rank]);
      spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(1s);
      spec.options.estimator = estimator;
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(requests[rank]->status.ok());
      EXPECT_EQ(requests[rank]->report.contributors.mean,
                estimator == Estimator::symmetric_ratio ? 0.0 : 1.0);
      for (const float value : data[rank])
        ASSERT_TRUE(std::isfinite(value)) << to_string(estimator);
    }
  }
}

// "A 64-bit mask of ranks" allows 63 ranks at most. Here a group may have more.
TEST(CompetitorMistake, AMaskOfRanksHasSixtyFourBits) {
  for (const int size : {64, testing::seeds(65, 257)}) {
    EngineGroup group(GroupOptions{.size = size});
    group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      return !(header && header->kind == FlowKind::reduce && from == size - 1 && to == 0);
    };
    std::vector<std::vector<float>> data(size);
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(64 * size, 1.0f);
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = std::span(data[rank]);
      spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(10s);
      return spec;
    });
    ASSERT_TRUE(group.run(requests)) << size;
    EXPECT_EQ(requests[0]->report.contributors.min, static_cast<std::uint32_t>(size - 1));
    EXPECT_EQ(requests[1]->report.contributors.min, static_cast<std::uint32_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_NEAR(data[rank][0], size, size * 1e-5)
          << "one contribution is missing, and made up for";
      EXPECT_EQ(data[rank][64], static_cast<float>(size));
    }
  }
}

// "Two barriers on the data path." Here a call takes one round trip if its data fit the eager
// packets, and two otherwise, however many ranks there are.
TEST(CompetitorMistake, ControlRoundTripsLieBetweenTheDataPhases) {
  for (const int size : {2, 8}) {
    for (const auto& [count, ways] :
         {std::pair{std::size_t{64} * size, 2}, {std::size_t{20000} * size, 4}}) {
      EngineGroup group(GroupOptions{.size = size});
      FloatAllReduce call(size, count);
      call.submit_all(group);
      ASSERT_TRUE(call.finish(group));
      EXPECT_LE(call.report(0).times.total, ways * GroupOptions().delay) << count;
    }
  }
}

// "A stalled control channel stalls the data." Here only data arrive, and no report. An operation
// without repairs must not be delayed.
TEST(CompetitorMistake, AStalledControlChannelDelaysTheData) {
  EngineGroup group(GroupOptions{.size = 3});
  group.filter = [](Rank, Rank, ByteSpan datagram) { return testing::is_data(datagram); };
  FloatAllReduce call(3, 3 * 4 * 352);  // the eager packets of each flow
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests(), 10s));
  EXPECT_LE(call.report(0).times.reduce, 2 * GroupOptions().delay);
}

// "State is static in the process." Here two communicators on two networks run interleaved.
TEST(CompetitorMistake, StateIsSharedByTheWholeProcess) {
  EngineGroup one(lossy_network(3, 0.1, 1)), other(lossy_network(4, 0.2, 2));
  FloatAllReduce first(3, 20000), second(4, 30000);
  for (Rank rank = 0; rank < 4; ++rank) {
    second.submit(other, rank);
    if (rank < 3) first.submit(one, rank);
    one.run_until([] { return false; }, 50us);
  }
  EXPECT_TRUE(second.finish(other));
  EXPECT_TRUE(first.finish(one));
}

// "Statistics only at exit." Here each operation has a report of its own.
TEST(CompetitorMistake, StatisticsComeOnlyAtExit) {
  EngineGroup group(lossy_network(3, 0.2));
  for (int i = 0; i < 5; ++i) {
    FloatAllReduce call(3, 30000, best_effort(10s));
    call.submit_all(group);
    ASSERT_TRUE(group.run(call.requests()));
    EXPECT_EQ(call.report(0).sequence, static_cast<std::uint64_t>(i));
    EXPECT_EQ(call.report(0).peers.size(), 2u);
    for (const PeerReport& row : call.report(0).peers) EXPECT_EQ(row.expected, 2u * 29u);
    EXPECT_GT(call.report(0).loss, 0.0);
    EXPECT_GT(call.report(0).bytes_sent, 2u * 2 * 29 * 1408);
  }
}

// "Timeouts are constants." Here the wait for a lost packet follows the measured round trip.
TEST(CompetitorMistake, TimeoutsAreConstants) {
  std::vector<double> times;
  for (const Duration delay : {Duration(1ms), Duration(10ms), Duration(100ms)}) {
    GroupOptions options{.size = 2, .delay = delay};
    EngineGroup group(options);
    int lost = 0;
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      return !(header && from == 1 && header->kind == FlowKind::reduce &&
               header->index.value == 5 && lost++ < 3);
    };
    FloatAllReduce call(2, 40000);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
    EXPECT_EQ(lost, 4) << "three repairs were lost too";
    times.push_back(static_cast<double>(call.report(0).times.total / delay));
  }
  EXPECT_NEAR(times[1], times[2], 0.3 * times[2]) << "in units of the delay";
  EXPECT_LT(times[2], 40.0);
}

// "One operation, one type, two buckets in flight." Here many calls are in flight.
TEST(CompetitorMistake, OnlyTwoBucketsAreInFlight) {
  EngineGroup group(lossy_network(3, 0.1));
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  for (int i = 0; i < limits::kOpenCollectivesMax; ++i) {
    calls.push_back(std::make_unique<FloatAllReduce>(3, 1 + 1237 * i));
    calls.back()->submit_all(group);
  }
  EXPECT_EQ(group.engine(0).endpoint().rounds().open_count(),
            std::size_t{limits::kOpenCollectivesMax});
  for (auto it = calls.rbegin(); it != calls.rend(); ++it) EXPECT_TRUE((*it)->finish(group));
}

}  // namespace
}  // namespace leeway::collective
