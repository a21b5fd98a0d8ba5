// Equal seeds must give equal outcomes. In virtual time, results and counts must be equal to the
// last bit. Over the in-process transport, with real threads and so another timing in each run, the
// same packets must be lost.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "leeway/communicator.h"
#include "support/engine_group.h"

namespace leeway {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

constexpr int kRanks = 4;
constexpr int kOperations = 8;
constexpr std::size_t kDatagramBytes = 512;
constexpr std::size_t kElements = kRanks * 20 * 96;  // 20 packets of each shard
constexpr std::uint64_t kSeed = 99;

// Returns values whose sum depends on the order of summation.
std::vector<float> make_input(int rank, int operation) {
  std::vector<float> input(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    input[i] = 1.0f / static_cast<float>(1 + i % 97 + 7 * rank + 31 * operation);
  }
  return input;
}

CollectiveOptions options_of(Estimator estimator) {
  CollectiveOptions options;
  options.op = ReduceOp::avg;
  options.delivery = best_effort(std::chrono::seconds(60));
  options.estimator = estimator;
  return options;
}

FaultOptions lossy(std::uint64_t seed) {
  FaultOptions faults;
  faults.loss = 0.15;
  faults.seed = seed;
  return faults;
}

std::string describe(const CollectiveReport& report) {
  std::ostringstream text;
  text << report.sequence << " loss " << report.loss << ' ' << report.loss_first_pass << " sent "
       << report.bytes_sent << " times " << report.times.gate.count() << ' '
       << report.times.reduce.count() << ' ' << report.times.spread.count() << ' '
       << report.times.total.count() << " cut " << report.deadline_cut << " complete "
       << report.complete << " missing " << report.elements_missing << " untouched "
       << report.elements_untouched << " variance " << report.variance_estimate << " contributors "
       << report.contributors.min << ' ' << report.contributors.mean;
  for (const std::uint64_t packets : report.contributors.histogram) text << ' ' << packets;
  for (const PeerReport& peer : report.peers) {
    text << "; " << peer.rank << ": " << peer.expected << ' ' << peer.arrived << ' '
         << peer.repaired << ' ' << peer.duplicate << ' ' << peer.late << ' ' << peer.sent;
  }
  return text.str();
}

// The outcome of one run: for each operation, the result on which all ranks agree, and each rank's
// report.
struct Outcome {
  std::vector<std::vector<float>> results;
  std::vector<std::vector<CollectiveReport>> reports;

  std::string all_reports() const {
    std::string text;
    for (const auto& operation : reports) {
      for (const CollectiveReport& report : operation) text += describe(report) + '\n';
    }
    return text;
  }
};

Outcome run_in_virtual_time(const FaultOptions& faults, Estimator estimator) {
  testing::EngineGroup group(
      {.size = kRanks, .datagram_bytes = kDatagramBytes, .faults = faults, .seed = kSeed});
  Outcome outcome;
  for (int operation = 0; operation < kOperations; ++operation) {
    std::vector<std::vector<float>> data;
    for (int rank = 0; rank < kRanks; ++rank) data.push_back(make_input(rank, operation));
    const auto requests = group.submit_all([&](Rank rank) {
      return OperationSpec{.kind = OperationKind::all_reduce,
                           .input = std::span(std::as_const(data[rank])),
                           .output = std::span(data[rank]),
                           .options = options_of(estimator)};
    });
    EXPECT_TRUE(group.run(requests));
    auto& reports = outcome.reports.emplace_back();
    for (const collective::Request* request : requests) {
      EXPECT_TRUE(request->status.ok()) << request->status.text();
      reports.push_back(request->report);
    }
    for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(data[rank], data[0]) << "rank " << rank;
    outcome.results.push_back(data[0]);
  }
  return outcome;
}

Outcome run_on_threads(const FaultOptions& faults, Estimator estimator) {
  Options options;
  options.seed = kSeed;
  options.datagram_bytes = kDatagramBytes;
  options.faults = faults;
  auto created = Communicator::create_inproc(kRanks, options);
  EXPECT_TRUE(created.ok()) << created.status().text();
  Outcome outcome;
  outcome.results.resize(kOperations);
  outcome.reports.assign(kOperations, std::vector<CollectiveReport>(kRanks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int operation = 0; operation < kOperations; ++operation) {
        auto data = make_input(rank, operation);
        const auto report = (*created)[rank]->all_reduce(std::span(data), options_of(estimator));
        ASSERT_TRUE(report.ok()) << report.status().text();
        outcome.reports[operation][rank] = *report;
        if (rank == 0) outcome.results[operation] = data;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

TEST(DeterminismVirtualTime, TheSameSeedGivesTheSameResultsAndReports) {
  FaultOptions faults = lossy(5);
  faults.burst = 3.0;
  faults.duplicate = 0.02;
  faults.reorder = 0.05;
  faults.corrupt = 0.01;
  const Outcome first = run_in_virtual_time(faults, Estimator::augmented);
  const Outcome second = run_in_virtual_time(faults, Estimator::augmented);
  EXPECT_EQ(first.results, second.results);
  EXPECT_EQ(first.all_reports(), second.all_reports());
}

TEST(DeterminismVirtualTime, AnotherSeedLosesOtherPackets) {
  const Outcome first = run_in_virtual_time(lossy(5), Estimator::ratio);
  const Outcome second = run_in_virtual_time(lossy(6), Estimator::ratio);
  for (int operation = 0; operation < kOperations; ++operation) {
    EXPECT_NE(first.results[operation], second.results[operation]) << "operation " << operation;
  }
}

class DeterminismAcrossTransports : public ::testing::TestWithParam<Estimator> {};
INSTANTIATE_TEST_SUITE_P(Estimators, DeterminismAcrossTransports,
                         ::testing::Values(Estimator::ratio, Estimator::symmetric_ratio,
                                           Estimator::horvitz_thompson, Estimator::augmented),
                         [](const auto& estimator) {
                           return std::string(to_string(estimator.param));
                         });

TEST_P(DeterminismAcrossTransports, ThreadsLoseThePacketsThatVirtualTimeLoses) {
  const Outcome simulated = run_in_virtual_time(lossy(5), GetParam());
  const Outcome threaded = run_on_threads(lossy(5), GetParam());
  for (int operation = 0; operation < kOperations; ++operation) {
    EXPECT_EQ(threaded.results[operation], simulated.results[operation])
        << "operation " << operation;
    for (int rank = 0; rank < kRanks; ++rank) {
      const CollectiveReport& real = threaded.reports[operation][rank];
      const CollectiveReport& virtual_time = simulated.reports[operation][rank];
      EXPECT_EQ(real.contributors.histogram, virtual_time.contributors.histogram)
          << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace leeway
