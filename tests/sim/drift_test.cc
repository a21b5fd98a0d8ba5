// The library's bounded-drift broadcast, over thousands of broadcasts in virtual time: ages of
// copies and distances between them agree with the formulas of estimate/drift.h.
//
// Every element is a random walk with steps of mean u and variance 1. Copies in one packet share an
// age. Packets, links and elements are independent of each other, but broadcasts are not. So
// standard errors come from batches that are much longer than any age.
//
// Two kinds of loss bursts act differently. A burst within one broadcast (FaultOptions::burst) hits
// packets that are neighbours in the sending order. This order is drawn anew for every broadcast,
// so whether a packet is lost does not depend on the broadcast before, and ages are those of
// independent loss. A link that is down for whole broadcasts makes copies older, as burst_drift()
// (support/drift_forms.h) predicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/philox.h"
#include "estimate/drift.h"
#include "sim/measurement.h"
#include "support/drift_forms.h"
#include "support/engine_group.h"
#include "wire/packet.h"

namespace leeway {
namespace {

using collective::BroadcastLedger;
using collective::OperationKind;
using collective::OperationSpec;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 4;
constexpr int kReceivers = kRanks - 1;
constexpr int kPairs = kReceivers * (kReceivers - 1) / 2;
constexpr std::size_t kPacketElements = 96;  // elements in a datagram of 512 bytes
// Number of elements of a packet that change; the others stay constant
constexpr std::size_t kWalkers = 32;
constexpr int kBatchBroadcasts = 100;
constexpr std::size_t kAges = 5;  // ages whose probabilities are compared

struct WalkOptions {
  FaultOptions faults;
  double step_mean = 0.0;
  std::uint32_t age_max = 0;
  std::uint32_t packets = 8;  // packets of each shard
  int batches = 30;
};

// Means over batches of all quantities that have a prediction.
struct WalkSamples {
  Sample pair, owner, gap, gap_form, differ, age, loss;
  std::array<Sample, kAges> age_is;
  // The share of blocks that a broadcast had to deliver because of age_max.
  Sample refreshed;
  Sample repaired;  // those of the refreshed blocks that came by a repair
  std::uint32_t age_max_seen = 0;
};

class Walk {
 public:
  explicit Walk(const WalkOptions& options)
      : options_(options),
        group_({.size = kRanks, .datagram_bytes = 512, .faults = options.faults, .seed = 11}),
        shard_(options.packets * kPacketElements),
        values_(kRanks, std::vector<float>(kRanks * shard_, 0.0f)),
        ledgers_(kRanks),
        ages_(kRanks, std::vector<std::uint32_t>(kRanks * options.packets, 0)) {
    for (BroadcastLedger& ledger : ledgers_) {
      ledger.required.assign(kRanks, Bitmap(options.packets));
      ledger.arrived.assign(kRanks, Bitmap(options.packets));
    }
  }

  testing::EngineGroup& group() { return group_; }
  std::function<void()> before_broadcast = [] {};

  WalkSamples run() {
    run_batch();  // reaches the stationary state
    samples_ = {};
    for (int batch = 0; batch < options_.batches && !::testing::Test::HasFatalFailure(); ++batch)
      run_batch();
    return samples_;
  }

 private:
  // Sums over one batch of broadcasts.
  struct Batch {
    double pair = 0.0, owner = 0.0, gap = 0.0;
    std::uint64_t gaps = 0, differ = 0, ages = 0, refreshed = 0, repaired = 0;
    std::uint64_t lost = 0;
    std::array<std::uint64_t, kAges> age_is{};
  };

  void run_batch() {
    batch_ = {};
    for (int i = 0; i < kBatchBroadcasts && !::testing::Test::HasFatalFailure(); ++i) {
      step();
      require_old_blocks();
      before_broadcast();
      broadcast();
      for (Rank rank = 0; rank < kRanks; ++rank) update_ages(rank);
      for (Rank owner = 0; owner < kRanks; ++owner) compare_copies(owner);
    }
    close_batch();
  }

  void close_batch() {
    const double blocks = 1.0 * kBatchBroadcasts * kRanks * options_.packets;
    const double copies = blocks * kReceivers;
    const double pair = batch_.pair / (blocks * kPairs * kWalkers);
    const double gap = batch_.gap / (static_cast<double>(batch_.gaps) * kWalkers);
    samples_.pair.add(pair);
    samples_.owner.add(batch_.owner / (copies * kWalkers));
    samples_.gap.add(gap);
    samples_.gap_form.add(pair - estimate::pair_drift_from_gap(rate(), gap));
    samples_.differ.add(static_cast<double>(batch_.differ) / (blocks * kPairs));
    samples_.age.add(static_cast<double>(batch_.ages) / copies);
    samples_.loss.add(static_cast<double>(batch_.lost) / copies);
    for (std::size_t age = 0; age < kAges; ++age) {
      samples_.age_is[age].add(static_cast<double>(batch_.age_is[age]) / copies);
    }
    samples_.refreshed.add(static_cast<double>(batch_.refreshed) / copies);
    samples_.repaired.add(static_cast<double>(batch_.repaired) / copies);
  }

  double rate() const { return options_.faults.loss; }

  // Makes one optimizer step: adds u + 1 or u - 1 to every changing element.
  void step() {
    for (Rank owner = 0; owner < kRanks; ++owner) {
      for (std::uint32_t packet = 0; packet < options_.packets; ++packet) {
        std::uint64_t signs = random_();
        for (float& value : walkers(owner, owner, packet)) {
          value += static_cast<float>(options_.step_mean + ((signs & 1) != 0 ? 1.0 : -1.0));
          signs >>= 1;
        }
      }
    }
  }

  // Requires blocks as Replica does: a block must arrive if it would otherwise become older than
  // age_max.
  void require_old_blocks() {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (Rank owner = 0; owner < kRanks; ++owner) {
        ledgers_[rank].arrived[owner].clear();
        ledgers_[rank].required[owner].clear();
        if (owner == rank || options_.age_max == 0) continue;
        for (std::uint32_t packet = 0; packet < options_.packets; ++packet) {
          if (age(rank, owner, packet) < options_.age_max) continue;
          ledgers_[rank].required[owner].set(packet);
          ++batch_.refreshed;
        }
      }
    }
  }

  void broadcast() {
    const auto requests = group_.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = OperationKind::replica_broadcast,
                         .input = std::span(std::as_const(values_[rank])),
                         .output = std::span(values_[rank]),
                         .ledger = &ledgers_[rank]};
      spec.options.delivery = best_effort(std::chrono::seconds(60));
      spec.options.spread = Delivery::Kind::best_effort;
      return spec;
    });
    ASSERT_TRUE(group_.run(requests));
    for (const collective::Request* request : requests) {
      ASSERT_TRUE(request->status.ok()) << request->status.text();
      ASSERT_FALSE(request->report.deadline_cut);
      for (const PeerReport& peer : request->report.peers) {
        batch_.repaired += peer.repaired;
        batch_.lost += peer.expected - peer.arrived + peer.repaired;
      }
    }
  }

  void update_ages(Rank rank) {
    for (Rank owner = 0; owner < kRanks; ++owner) {
      for (std::uint32_t packet = 0; packet < options_.packets && owner != rank; ++packet) {
        std::uint32_t& now = age(rank, owner, packet);
        now = ledgers_[rank].arrived[owner].test(packet) ? 0 : now + 1;
        samples_.age_max_seen = std::max(samples_.age_max_seen, now);
        batch_.ages += now;
        if (now < kAges) ++batch_.age_is[now];
      }
    }
  }

  void compare_copies(Rank owner) {
    for (std::uint32_t packet = 0; packet < options_.packets; ++packet) {
      for (Rank a = 0; a < kRanks; ++a) {
        if (a == owner) continue;
        batch_.owner += square_distance(owner, a, owner, packet);
        for (Rank b = a + 1; b < kRanks; ++b) {
          if (b != owner) compare_pair(a, b, owner, packet);
        }
      }
    }
  }

  void compare_pair(Rank a, Rank b, Rank owner, std::uint32_t packet) {
    const double square = square_distance(a, b, owner, packet);
    batch_.pair += square;
    batch_.differ += age(a, owner, packet) != age(b, owner, packet);
    if ((age(a, owner, packet) == 0) == (age(b, owner, packet) == 0)) return;
    batch_.gap += square;  // exactly one of the two received
    ++batch_.gaps;
  }

  double square_distance(Rank a, Rank b, Rank owner, std::uint32_t packet) {
    const auto x = walkers(a, owner, packet);
    const auto y = walkers(b, owner, packet);
    double sum = 0.0;
    for (std::size_t i = 0; i < kWalkers; ++i) {
      const double distance = static_cast<double>(x[i]) - y[i];
      sum += distance * distance;
    }
    return sum;
  }

  std::span<float> walkers(Rank holder, Rank owner, std::uint32_t packet) {
    return std::span(values_[holder]).subspan(owner * shard_ + packet * kPacketElements, kWalkers);
  }
  std::uint32_t& age(Rank holder, Rank owner, std::uint32_t packet) {
    return ages_[holder][owner * options_.packets + packet];
  }

  WalkOptions options_;
  testing::EngineGroup group_;
  std::size_t shard_;
  std::vector<std::vector<float>> values_;  // by rank: the whole tensor as that rank holds it
  std::vector<BroadcastLedger> ledgers_;
  std::vector<std::vector<std::uint32_t>> ages_;  // by rank
  std::mt19937_64 random_{5};
  Batch batch_;
  WalkSamples samples_;
};

FaultOptions faults_of(double loss, double burst = 1.0) {
  FaultOptions faults;
  faults.loss = loss;
  faults.burst = burst;
  faults.seed = 21;
  return faults;
}

std::string at(double p, const char* what) {
  char text[96];
  std::snprintf(text, sizeof(text), "p = %.2f, %s", p, what);
  return text;
}

// Relative error that the test must detect. The mean square gap is 1/(1-p) times the variance of a
// step. A formula without this factor is off by at least 5 %, as the least loss p is 0.05.
constexpr double kResolution = 0.02;

void expect_model(const WalkSamples& samples, const estimate::DriftModel& model, double p,
                  double step_mean) {
  const double u2 = step_mean * step_mean;
  expect_matches(at(p, "first-pass loss"), samples.loss, p, kResolution * p);
  expect_matches(at(p, "versions differ"), samples.differ, model.differ,
                 kResolution * model.differ);
  expect_matches(at(p, "pair, from steps"), samples.pair, model.pair.of(1, u2),
                 kResolution * model.pair.of(1, u2));
  expect_matches(at(p, "owner, from steps"), samples.owner, model.owner.of(1, u2),
                 kResolution * model.owner.of(1, u2));
  expect_matches(at(p, "age"), samples.age, model.age_mean, kResolution * model.age_mean);
}

class ReplicaBroadcastDrift : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Loss, ReplicaBroadcastDrift, ::testing::Values(0.05, 0.1, 0.2, 0.4));

TEST_P(ReplicaBroadcastDrift, FollowsBothSigmasOfARandomWalk) {
  const double p = GetParam();
  const WalkSamples samples = Walk({.faults = faults_of(p)}).run();
  testing::print_header("random walk");
  expect_model(samples, estimate::independent_drift(p), p, 0.0);
  expect_matches(at(p, "gap given that one received"), samples.gap, 1 / (1 - p), kResolution);
  expect_matches(at(p, "pair - 2p/(1+p) gap"), samples.gap_form, 0.0, kResolution * p);
}

TEST_P(ReplicaBroadcastDrift, AMeanStepAddsItsOwnTerms) {
  const double p = GetParam();
  constexpr double kMean = 0.5;
  const WalkSamples samples = Walk({.faults = faults_of(p), .step_mean = kMean}).run();
  testing::print_header("walk with a mean step of 0.5");
  expect_model(samples, estimate::independent_drift(p), p, kMean);
  expect_matches(at(p, "pair - 2p/(1+p) gap"), samples.gap_form, 0.0, kResolution * p);
}

TEST_P(ReplicaBroadcastDrift, AgesAreGeometric) {
  const double p = GetParam();
  const WalkSamples samples = Walk({.faults = faults_of(p), .batches = 60}).run();
  testing::print_header("ages");
  for (std::size_t age = 0; age < kAges; ++age) {
    const double wanted = (1 - p) * std::pow(p, age);
    const std::string what = at(p, "P(age = ") + std::to_string(age) + ")";
    if (wanted < 1e-4) continue;  // too few to have a standard error
    expect_matches(what, samples.age_is[age], wanted, 0.2 * wanted);
  }
}

class ReplicaBroadcastAgeCap : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(AgeMax, ReplicaBroadcastAgeCap, ::testing::Values(1, 2, 4));

// A block of age age_max must arrive, so if it is lost it is repaired within the same broadcast.
// The age would have become age_max + 1, so repairs come at the rate of refresh_rate() for age_max
// + 1.
TEST_P(ReplicaBroadcastAgeCap, NoAgeExceedsItAndRefreshesComeAtThePredictedRate) {
  constexpr double kLoss = 0.4;
  const std::uint32_t age_max = GetParam();
  const WalkSamples samples =
      Walk({.faults = faults_of(kLoss), .age_max = age_max, .batches = 30}).run();
  EXPECT_EQ(samples.age_max_seen, age_max);
  const double repaired = estimate::testing::refresh_rate(kLoss, age_max + 1);
  const std::string cap = "age_max " + std::to_string(age_max);
  testing::print_header("part of all blocks per broadcast");
  expect_matches(cap + ": repaired", samples.repaired, repaired, 0.05 * repaired);
  expect_matches(cap + ": required", samples.refreshed, repaired / kLoss, 0.05 * repaired / kLoss);
}

TEST(ReplicaBroadcastBursts, AlongThePacketsOfABroadcastLeaveAgesAlone) {
  constexpr double kLoss = 0.2;
  const WalkSamples samples =
      Walk({.faults = faults_of(kLoss, 8.0), .packets = 16, .batches = 60}).run();
  testing::print_header("bursts of 8 along the packets of a broadcast");
  expect_model(samples, estimate::independent_drift(kLoss), kLoss, 0.0);
}

// Takes links down for whole broadcasts. Only data are withheld; the sender's END still arrives.
class LinkOutages {
 public:
  LinkOutages(double loss, double burst) : fail_(loss / (1 - loss) / burst), recover_(1 / burst) {}

  void next() {
    ++broadcast_;
    for (std::size_t link = 0; link < down_.size(); ++link) {
      const double u = to_unit(keyed_hash(31, broadcast_, 0, static_cast<std::uint32_t>(link), 0));
      down_[link] = down_[link] ? u >= recover_ : u < fail_;
    }
  }
  bool passes(Rank from, Rank to, ByteSpan datagram) const {
    wire::Prefix prefix;
    if (wire::decode_prefix(datagram, nullptr, prefix) != wire::Refusal::none) return true;
    return prefix.type != wire::PacketType::data || !down_[from * kRanks + to];
  }

 private:
  double fail_;
  double recover_;
  std::uint32_t broadcast_ = 0;
  std::array<bool, kRanks * kRanks> down_{};
};

TEST(ReplicaBroadcastBursts, OfWholeBroadcastsFollowTheGilbertForms) {
  constexpr double kLoss = 0.2;
  constexpr double kBurst = 4.0;
  LinkOutages outages(kLoss, kBurst);
  Walk walk({.packets = 2, .batches = 200});
  walk.before_broadcast = [&] { outages.next(); };
  walk.group().filter = [&](Rank from, Rank to, ByteSpan datagram) {
    return outages.passes(from, to, datagram);
  };
  const WalkSamples samples = walk.run();
  const estimate::DriftModel model = estimate::testing::burst_drift(kLoss, kBurst);
  testing::print_header("links down for 4 broadcasts on average");
  expect_matches(at(kLoss, "versions differ"), samples.differ, model.differ, 0.05 * model.differ);
  expect_matches(at(kLoss, "pair, from steps"), samples.pair, model.pair.variance,
                 0.05 * model.pair.variance);
  expect_matches(at(kLoss, "owner, from steps"), samples.owner, model.owner.variance,
                 0.05 * model.owner.variance);
  expect_matches(at(kLoss, "age"), samples.age, model.age_mean, 0.05 * model.age_mean);
  EXPECT_GT(samples.age.mean(), 2 * estimate::independent_drift(kLoss).age_mean)
      << "a burst must show in the ages";
}

}  // namespace
}  // namespace leeway
