#include "impairment/fault_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace leeway::impairment {
namespace {

using namespace std::chrono_literals;

PacketAddress data(std::uint32_t index, std::uint32_t round = 1, Rank source = 1) {
  PacketAddress packet;
  packet.source = source;
  packet.destination = 0;
  packet.round = round;
  packet.index = {index};
  packet.position = {index};
  return packet;
}

PacketAddress control(std::uint32_t sequence, std::uint8_t type = 2, Rank source = 1) {
  PacketAddress packet;
  packet.source = source;
  packet.destination = 0;
  packet.control = true;
  packet.type = type;
  packet.sequence = sequence;
  return packet;
}

FaultPlan plan_of(const FaultOptions& options) {
  return FaultPlan::create(options).value();
}

// Three standard errors of a share among n independent draws.
double three_sigma(double p, double n) {
  return 3.0 * std::sqrt(p * (1.0 - p) / n);
}

constexpr std::uint32_t kPlanPackets = 100'000;

TEST(FaultPlanFate, IndependentLossHasTheAskedRateForDataAndControl) {
  FaultPlan plan = plan_of({.loss = 0.1});
  std::uint32_t lost_data = 0;
  std::uint32_t lost_control = 0;
  for (std::uint32_t i = 0; i < kPlanPackets; ++i) {
    lost_data += plan.fate(data(i)).lost ? 1 : 0;
    lost_control += plan.fate(control(i)).lost ? 1 : 0;
  }
  EXPECT_NEAR(lost_data / double{kPlanPackets}, 0.1, three_sigma(0.1, kPlanPackets));
  EXPECT_NEAR(lost_control / double{kPlanPackets}, 0.1, three_sigma(0.1, kPlanPackets));
}

TEST(FaultPlanFate, TheSameAddressHasTheSameFateInAnyPlanOfTheSameSeed) {
  const FaultOptions options{
      .loss = 0.2, .duplicate = 0.3, .reorder = 0.3, .corrupt = 0.3, .seed = 5};
  FaultPlan forward = plan_of(options);
  FaultPlan backward = plan_of(options);
  std::vector<Fate> fates;
  for (std::uint32_t i = 0; i < 1000; ++i) fates.push_back(forward.fate(data(i)));
  for (std::uint32_t i = 1000; i-- > 0;) {
    const Fate fate = backward.fate(data(i));
    EXPECT_EQ(fate.lost, fates[i].lost);
    EXPECT_EQ(fate.duplicate, fates[i].duplicate);
    EXPECT_EQ(fate.corrupt, fates[i].corrupt);
    EXPECT_EQ(fate.corrupt_bit, fates[i].corrupt_bit);
    EXPECT_EQ(fate.reorder, fates[i].reorder);
  }
}

TEST(FaultPlanFate, SequenceAndPositionDoNotTouchIndependentLossOfData) {
  FaultPlan plan = plan_of({.loss = 0.5});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    PacketAddress later = data(i);
    later.sequence = 12345;
    later.position = {1000 - i};
    EXPECT_EQ(plan.fate(later).lost, plan.fate(data(i)).lost);
  }
}

// The largest allowed deviation, in standard errors, where a test makes several comparisons. With
// ten of them, one in 1,600 seeds fails by chance.
constexpr double kSigmasOfMany = 4.0;

// Returns how far the share of packets that have the same fate in two streams is from one half, in
// standard errors. Each stream loses half of its packets.
template <typename First, typename Second>
double disagreement_in_sigmas(FaultPlan& plan, First first, Second second) {
  std::uint32_t equal = 0;
  for (std::uint32_t i = 0; i < kPlanPackets; ++i)
    equal += plan.fate(first(i)).lost == plan.fate(second(i)).lost ? 1 : 0;
  return std::abs(equal / double{kPlanPackets} - 0.5) / (0.5 / std::sqrt(kPlanPackets));
}

TEST(FaultPlanFate, EveryPartOfADataAddressDrawsAnew) {
  FaultPlan plan = plan_of({.loss = 0.5});
  const auto base = [](std::uint32_t i) { return data(i); };
  const auto changed = [&](auto change) {
    return [change](std::uint32_t i) {
      PacketAddress packet = data(i);
      change(packet);
      return packet;
    };
  };
  EXPECT_LT(disagreement_in_sigmas(plan, base, changed([](auto& packet) { packet.source = 2; })),
            kSigmasOfMany);
  EXPECT_LT(
      disagreement_in_sigmas(plan, base, changed([](auto& packet) { packet.destination = 2; })),
      kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, changed([](auto& packet) { packet.round = 2; })),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, changed([](auto& packet) { packet.phase = 1; })),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, changed([](auto& packet) { packet.attempt = 1; })),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, [](std::uint32_t i) { return data(i + 1); }),
            kSigmasOfMany);
}

TEST(FaultPlanFate, EveryPartOfAControlAddressDrawsAnew) {
  FaultPlan plan = plan_of({.loss = 0.5});
  const auto base = [](std::uint32_t i) { return control(i); };
  EXPECT_LT(disagreement_in_sigmas(plan, base, [](std::uint32_t i) { return control(i, 3); }),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, [](std::uint32_t i) { return control(i, 2, 2); }),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, [](std::uint32_t i) { return control(i + 1); }),
            kSigmasOfMany);
  EXPECT_LT(disagreement_in_sigmas(plan, base, [](std::uint32_t i) { return data(i); }),
            kSigmasOfMany);
}

TEST(FaultPlanFate, AnotherSeedLosesOtherPackets) {
  FaultPlan one = plan_of({.loss = 0.5, .seed = 1});
  FaultPlan two = plan_of({.loss = 0.5, .seed = 2});
  std::uint32_t equal = 0;
  for (std::uint32_t i = 0; i < kPlanPackets; ++i)
    equal += one.fate(data(i)).lost == two.fate(data(i)).lost ? 1 : 0;
  EXPECT_NEAR(equal / double{kPlanPackets}, 0.5, three_sigma(0.5, kPlanPackets));
}

TEST(FaultPlanFate, BurstsRunAlongPositionsFirstAndIndicesLater) {
  FaultPlan plan = plan_of({.loss = 0.2, .burst = 8.0});
  GilbertLoss chain(1, 8.0);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    PacketAddress packet = data(1999 - i);
    packet.position = {i};
    ASSERT_EQ(plan.fate(packet).lost, chain.lost({1, 0, 1, 0, 0}, i, 0.2));
    packet.attempt = 2;
    ASSERT_EQ(plan.fate(packet).lost, chain.lost({1, 0, 1, 0, 2}, packet.index.value, 0.2));
  }
}

TEST(FaultPlanFate, BurstsLeaveControlDatagramsIndependent) {
  FaultPlan bursty = plan_of({.loss = 0.3, .burst = 50.0});
  FaultPlan independent = plan_of({.loss = 0.3});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(bursty.fate(control(i)).lost, independent.fate(control(i)).lost);
  }
}

TEST(FaultPlanFate, LinkLossOverridesLossForItsSourcesOnly) {
  FaultPlan plan = plan_of({.loss = 0.25, .link_loss = {1.0, 0.0}});
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < kPlanPackets; ++i) {
    EXPECT_TRUE(plan.fate(data(i, 1, 0)).lost);
    EXPECT_FALSE(plan.fate(data(i, 1, 1)).lost);
    lost += plan.fate(data(i, 1, 2)).lost ? 1 : 0;
  }
  EXPECT_NEAR(lost / double{kPlanPackets}, 0.25, three_sigma(0.25, kPlanPackets));
}

TEST(FaultPlanFate, ListedPacketsAreLostOnce) {
  FaultPlan plan = plan_of({.list = "1>0/1/0/7"});
  EXPECT_TRUE(plan.fate(data(7)).lost);
  EXPECT_FALSE(plan.fate(data(8)).lost);
  PacketAddress repair = data(7);
  repair.attempt = 1;
  EXPECT_FALSE(plan.fate(repair).lost);
}

TEST(FaultPlanFate, OtherFaultsHaveTheirRatesAndAreIndependentOfEachOther) {
  FaultPlan plan = plan_of({.duplicate = 0.1, .reorder = 0.2, .corrupt = 0.3});
  std::uint32_t duplicates = 0;
  std::uint32_t reorders = 0;
  std::uint32_t corrupts = 0;
  std::uint32_t all = 0;
  for (std::uint32_t i = 0; i < kPlanPackets; ++i) {
    const Fate fate = plan.fate(data(i));
    duplicates += fate.duplicate ? 1 : 0;
    reorders += fate.reorder > 0 ? 1 : 0;
    corrupts += fate.corrupt ? 1 : 0;
    all += fate.duplicate && fate.reorder > 0 && fate.corrupt ? 1 : 0;
    EXPECT_FALSE(fate.lost);
  }
  EXPECT_NEAR(duplicates / double{kPlanPackets}, 0.1, three_sigma(0.1, kPlanPackets));
  EXPECT_NEAR(reorders / double{kPlanPackets}, 0.2, three_sigma(0.2, kPlanPackets));
  EXPECT_NEAR(corrupts / double{kPlanPackets}, 0.3, three_sigma(0.3, kPlanPackets));
  EXPECT_NEAR(all / double{kPlanPackets}, 0.006, three_sigma(0.006, kPlanPackets));
}

TEST(FaultPlanFate, ReorderedPacketsAreOvertakenByOneToEightWithEqualChance) {
  FaultPlan plan = plan_of({.reorder = 1.0});
  std::array<std::uint32_t, kReorderDistanceMax + 1> count{};
  for (std::uint32_t i = 0; i < kPlanPackets; ++i)
    ++count.at(static_cast<std::size_t>(plan.fate(data(i)).reorder));
  EXPECT_EQ(count[0], 0u);
  for (int distance = 1; distance <= kReorderDistanceMax; ++distance) {
    EXPECT_NEAR(count[static_cast<std::size_t>(distance)] / double{kPlanPackets}, 0.125,
                three_sigma(0.125, kPlanPackets));
  }
}

TEST(FaultPlanFate, CorruptionTouchesManyDifferentBits) {
  FaultPlan plan = plan_of({.corrupt = 1.0});
  std::set<std::uint64_t> bits;
  for (std::uint32_t i = 0; i < 1000; ++i) bits.insert(plan.fate(data(i)).corrupt_bit % 11776);
  // 1,000 draws from 11,776 bits give 959 different ones on average, with a standard deviation of
  // about 6.
  EXPECT_GT(bits.size(), 935u);
}

TEST(FaultPlanFate, DelayIsAddedToEveryDatagramThatArrives) {
  FaultPlan plan = plan_of({.delay = 3ms});
  EXPECT_EQ(plan.fate(data(0)).delay, Duration(3ms));
  EXPECT_EQ(plan.fate(control(0)).delay, Duration(3ms));
}

TEST(FaultPlanCreate, OptionsOutOfRangeAreRefused) {
  EXPECT_FALSE(FaultPlan::create({.loss = 1.01}).ok());
  EXPECT_FALSE(FaultPlan::create({.burst = 0.0}).ok());
  EXPECT_FALSE(FaultPlan::create({.link_loss = {0.5, -1.0}}).ok());
  EXPECT_FALSE(FaultPlan::create({.link_loss = std::vector<double>(1025)}).ok());
  EXPECT_FALSE(FaultPlan::create({.list = "nonsense"}).ok());
  EXPECT_TRUE(FaultPlan::create({}).ok());
}

}  // namespace
}  // namespace leeway::impairment
