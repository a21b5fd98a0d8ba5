// Compares the simulator with reality: the same small case runs with the same injected losses over
// loopback UDP and in virtual time. Losses depend only on a packet's address (FaultPlan). So
// results must be equal bit for bit, and reports in every count that does not depend on time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "endpoint/core_endpoints.h"
#include "leeway/leeway.h"
#include "scenario/parse.h"

namespace leeway {
namespace {

constexpr int kRanks = 4;
constexpr int kRounds = 5;
constexpr std::size_t kElements = 60'011;  // shards of unequal size
constexpr std::uint64_t kSeed = 42;
constexpr const char* kFaults = "loss=0.15,burst=3,seed=9";

struct Outcome {
  std::vector<float> result;
  Status status;
  CollectiveReport report;
};
using Outcomes = std::vector<std::vector<Outcome>>;  // by round, then rank

// Returns values that differ by rank and round, and whose sums are exact in float32.
std::vector<float> contribution(int rank, int round) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        static_cast<float>((i * 7919 + rank * 104'729 + round * 1'299'709) % 20'011) / 4096.0f -
        2.0f;
  }
  return values;
}

CollectiveOptions options_of(Estimator estimator, const char* codec) {
  CollectiveOptions options;
  options.op = ReduceOp::avg;
  options.delivery = best_effort(std::chrono::seconds(20));
  options.estimator = estimator;
  options.codec = parse_codec(codec).value();
  return options;
}

// ---- over UDP -----------------------------------------------------------------------------------

void run_rank(int rank, const std::string& rendezvous, const CollectiveOptions& collective,
              Outcomes& outcomes) {
  Options options;
  options.rank = rank;
  options.world_size = kRanks;
  options.rendezvous = rendezvous;
  options.datagram_bytes = 1472;
  options.seed = kSeed;
  options.faults = parse_faults(kFaults).value();
  auto communicator = Communicator::create(options);
  ASSERT_TRUE(communicator.ok()) << communicator.status().text();
  for (int round = 0; round < kRounds; ++round) {
    Outcome& outcome = outcomes[round][rank];
    const auto input = contribution(rank, round);
    outcome.result.assign(kElements, 0.0f);
    auto report = (*communicator)
                      ->all_reduce(ConstTensorView(std::span(input)),
                                   TensorView(std::span(outcome.result)), collective);
    outcome.status = report.status();
    if (report.ok()) outcome.report = *report;
  }
}

Outcomes over_udp(const CollectiveOptions& collective) {
  // Ports depend on the process id, so that test processes on one machine do not meet each other.
  static int port = 20'000 + ::getpid() % 10'000;
  const std::string rendezvous = "127.0.0.1:" + std::to_string(port++);
  Outcomes outcomes(kRounds, std::vector<Outcome>(kRanks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(rank, rendezvous, collective, outcomes); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// ---- in virtual time ----------------------------------------------------------------------------

class VirtualGroup final : private sim::Endpoints::Client {
 public:
  explicit VirtualGroup(const CollectiveOptions& collective)
      : collective_(collective),
        specs_(kRanks),
        inputs_(kRanks),
        rounds_(kRanks, 0),
        outcomes_(kRounds, std::vector<Outcome>(kRanks)) {
    const std::string text = "ranks: 4 operation { datagram_bytes: 1472 inject: \"" +
                             std::string(kFaults) + "\" } link { delay_ms { fixed: 0.05 } }";
    scenario_ = sim::scenario::parse_text(text, "parity").value();
    topology_ = std::make_unique<sim::Topology>(sim::Topology::make(scenario_).value());
    network_ = std::move(sim::Network::make(*topology_, kSeed, queue_, 1472).value());
    endpoints_ = std::move(
        sim::CoreEndpoints::make(scenario_, kSeed, *topology_, queue_, *network_).value());
  }

  Outcomes run() {
    for (int rank = 0; rank < kRanks; ++rank) submit({0}, rank);
    sim::Event event;
    while (!finished() && queue_.pop(event)) {
      event.kind == static_cast<std::uint32_t>(sim::EventKind::network)
          ? network_->on_event(event)
          : endpoints_->on_event(event);
    }
    return std::move(outcomes_);
  }

 private:
  bool finished() const {
    return std::all_of(rounds_.begin(), rounds_.end(),
                       [](int rounds) { return rounds == kRounds; });
  }

  void submit(Instant now, std::uint32_t rank) {
    const int round = rounds_[rank];
    Outcome& outcome = outcomes_[round][rank];
    inputs_[rank] = contribution(static_cast<int>(rank), round);
    outcome.result.assign(kElements, 0.0f);
    specs_[rank] = {.kind = collective::OperationKind::all_reduce,
                    .input = std::span<const float>(inputs_[rank]),
                    .output = std::span(outcome.result),
                    .options = collective_};
    endpoints_->submit(
        now, rank,
        {.round = static_cast<std::uint32_t>(round), .bytes = 4 * kElements, .spec = &specs_[rank]},
        *this);
  }

  void on_done(Instant now, std::uint32_t rank, const sim::CallResult& result) override {
    Outcome& outcome = outcomes_[rounds_[rank]][rank];
    outcome.status = result.status;
    outcome.report = *result.report;
    if (++rounds_[rank] < kRounds) submit(now, rank);
  }

  const CollectiveOptions collective_;
  sim::scenario::Scenario scenario_;
  sim::EventQueue queue_;
  std::unique_ptr<sim::Topology> topology_;
  std::unique_ptr<sim::Network> network_;
  std::unique_ptr<sim::CoreEndpoints> endpoints_;
  std::vector<collective::OperationSpec> specs_;
  std::vector<std::vector<float>> inputs_;
  std::vector<int> rounds_;
  Outcomes outcomes_;
};

// ---- comparison ---------------------------------------------------------------------------------

void expect_same_report(const CollectiveReport& real, const CollectiveReport& simulated) {
  ASSERT_EQ(real.peers.size(), simulated.peers.size());
  for (std::size_t i = 0; i < real.peers.size(); ++i) {
    SCOPED_TRACE("peer " + std::to_string(real.peers[i].rank));
    EXPECT_EQ(real.peers[i].rank, simulated.peers[i].rank);
    EXPECT_EQ(real.peers[i].expected, simulated.peers[i].expected);
    EXPECT_EQ(real.peers[i].arrived, simulated.peers[i].arrived);
    EXPECT_EQ(real.peers[i].repaired, simulated.peers[i].repaired);
    EXPECT_EQ(real.peers[i].late, simulated.peers[i].late);
  }
  EXPECT_EQ(real.sequence, simulated.sequence);
  EXPECT_EQ(real.contributors.min, simulated.contributors.min);
  EXPECT_EQ(real.contributors.mean, simulated.contributors.mean);
  EXPECT_EQ(real.contributors.histogram, simulated.contributors.histogram);
  EXPECT_EQ(real.loss, simulated.loss);
  EXPECT_EQ(real.loss_first_pass, simulated.loss_first_pass);
  EXPECT_EQ(real.deadline_cut, simulated.deadline_cut);
  EXPECT_EQ(real.complete, simulated.complete);
  EXPECT_EQ(real.elements_missing, simulated.elements_missing);
  EXPECT_EQ(real.elements_untouched, simulated.elements_untouched);
  EXPECT_EQ(real.estimator, simulated.estimator);
  // Other figures of the noise, such as variance_estimate, are not compared. They come from a
  // sample of packets that depends on the packets' order of arrival.
  EXPECT_EQ(real.noise.measured, simulated.noise.measured);
  EXPECT_EQ(real.noise.loss, simulated.noise.loss);
}

void expect_same(const Outcomes& real, const Outcomes& simulated) {
  double lost = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int rank = 0; rank < kRanks; ++rank) {
      SCOPED_TRACE("round " + std::to_string(round) + ", rank " + std::to_string(rank));
      const Outcome& a = real[round][rank];
      const Outcome& b = simulated[round][rank];
      ASSERT_TRUE(a.status.ok()) << a.status.text();
      ASSERT_TRUE(b.status.ok()) << b.status.text();
      EXPECT_EQ(std::memcmp(a.result.data(), b.result.data(), kElements * sizeof(float)), 0)
          << "results differ";
      expect_same_report(a.report, b.report);
      lost += a.report.loss_first_pass / (kRounds * kRanks);
    }
  }
  EXPECT_GT(lost, 0.1) << "the comparison says nothing without losses";
}

struct Case {
  const char* name;
  Estimator estimator;
  const char* codec;
};
class SimulatorAgainstUdp : public ::testing::TestWithParam<Case> {};

TEST_P(SimulatorAgainstUdp, SameLossesGiveTheSameResultsAndReports) {
  const CollectiveOptions options = options_of(GetParam().estimator, GetParam().codec);
  const Outcomes real = over_udp(options);
  if (HasFatalFailure()) return;
  expect_same(real, VirtualGroup(options).run());
}

INSTANTIATE_TEST_SUITE_P(Cases, SimulatorAgainstUdp,
                         ::testing::Values(Case{"ratio", Estimator::ratio, "fp32"},
                                           Case{"horvitz_thompson", Estimator::horvitz_thompson,
                                                "fp32"},
                                           Case{"augmented", Estimator::augmented, "bf16"},
                                           Case{"nvfp4", Estimator::stratified, "nvfp4"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace leeway
