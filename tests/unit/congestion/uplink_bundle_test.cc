#include "congestion/uplink_bundle.h"

#include <deque>

#include <gtest/gtest.h>

#include "unit/congestion/bottleneck.h"

namespace leeway::congestion {
namespace {

using testing::Bottleneck;
using testing::FlowOptions;

constexpr Instant kStart{1'000'000'000};

// A controller with a fixed pace that records its samples.
class Listener final : public Controller {
 public:
  explicit Listener(std::vector<Sample>& samples) : samples_(samples) {}
  void on_sample(const Sample& sample) override { samples_.push_back(sample); }
  Pace pace() const override { return {.bits_per_second = 120e6, .in_flight_bytes = 30'000}; }

 private:
  std::vector<Sample>& samples_;
};

class UplinkBundleTest : public ::testing::Test {
 protected:
  UplinkBundleTest() { bundle_.make_link(0, 64); }

  void send(Instant now, std::uint32_t datagrams) {
    sequence_ += datagrams;
    bundle_.on_sent(now, 0, {sequence_, datagrams, 1500, datagrams * std::size_t{1500}});
  }

  std::vector<Sample> samples_;
  UplinkBundle bundle_{std::make_unique<Listener>(samples_)};
  std::uint32_t sequence_ = 0;
};

TEST_F(UplinkBundleTest, ASampleSaysWhatAReportCovers) {
  send(kStart, 4);
  const Instant later = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(later, 0, {.largest = 3, .received = 2, .received_bytes = 3000});
  ASSERT_EQ(samples_.size(), 1u);
  EXPECT_EQ(samples_[0].covered, 3u);
  EXPECT_EQ(samples_[0].lost, 1);
  EXPECT_EQ(samples_[0].newly_delivered_bytes, 3000u);
  EXPECT_EQ(samples_[0].rtt, std::chrono::milliseconds(20));
  EXPECT_EQ(samples_[0].interval, std::chrono::milliseconds(20));
  EXPECT_EQ(bundle_.in_flight_bytes(), 1500u);
}

TEST_F(UplinkBundleTest, APeerCannotReportMoreThanItWasSent) {
  send(kStart, 4);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 2, .received = 1'000'000, .received_bytes = 1u << 31});
  EXPECT_EQ(samples_.at(0).newly_delivered_bytes, 3000u);
  EXPECT_EQ(samples_.at(0).lost, 0);
  now = now + std::chrono::milliseconds(1);
  bundle_.on_report(now, 0, {.largest = 4, .received = 5, .received_bytes = 100});
  EXPECT_EQ(samples_.at(1).newly_delivered_bytes, 3000u);
  EXPECT_EQ(samples_.at(1).lost, 0);
}

TEST_F(UplinkBundleTest, MarksAreThoseOfTheReport) {
  send(kStart, 40);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 20, .received = 19, .ect = 16, .ce = 3});
  bundle_.on_report(now, 0, {.largest = 40, .received = 39, .ect = 34, .ce = 5});
  EXPECT_EQ(samples_.at(0).marked, 3u);
  EXPECT_EQ(samples_.at(1).marked, 2u);
}

// Required by WIRE 3.16.
TEST_F(UplinkBundleTest, WhatThePeersHostDroppedTheNetworkDidNotLose) {
  send(kStart, 40);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 20, .received = 15, .host_drops = 3});
  bundle_.on_report(now, 0, {.largest = 30, .received = 25, .host_drops = 3});
  bundle_.on_report(now, 0, {.largest = 40, .received = 35, .host_drops = 5});
  EXPECT_EQ(samples_.at(0).lost, 2);
  EXPECT_EQ(samples_.at(1).lost, 0);
  EXPECT_EQ(samples_.at(2).lost, -2) << "told late";
}

TEST_F(UplinkBundleTest, HostDropsThatAreToldLateAreNoLateArrivals) {
  send(kStart, 60);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 20, .received = 15});
  bundle_.on_report(now, 0, {.largest = 40, .received = 35, .host_drops = 5});
  bundle_.on_report(now, 0, {.largest = 60, .received = 50, .host_drops = 5});
  EXPECT_EQ(samples_.at(1).lost, -5);
  EXPECT_EQ(samples_.at(2).lost, 5);
}

TEST_F(UplinkBundleTest, NoMoreHostDropsAreBelievedThanDatagramsAreMissing) {
  send(kStart, 40);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 20, .received = 18, .host_drops = 60'000});
  bundle_.on_report(now, 0, {.largest = 40, .received = 30, .host_drops = 59'999});
  EXPECT_EQ(samples_.at(0).lost, 0);
  EXPECT_EQ(samples_.at(1).lost, 0);
}

TEST_F(UplinkBundleTest, AGrantIsInDatagramsOfTheLengthThatIsSent) {
  EXPECT_EQ(bundle_.datagrams_granted(0), UINT32_MAX);
  send(kStart, 4);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 2, .received = 2, .grant = 15'000});
  EXPECT_EQ(bundle_.datagrams_granted(0), 10u);
  bundle_.on_report(now, 0, {.largest = 4, .received = 4});
  EXPECT_EQ(bundle_.datagrams_granted(0), UINT32_MAX);
}

// Wrong counts of ECN marks make all marks worthless (WIRE 3.15).
TEST_F(UplinkBundleTest, MarksMeanNothingWhereTheNetworkErasesOrInventsThem) {
  for (const Arrivals& wrong :
       {Arrivals{.largest = 40, .received = 40, .ect = 20, .ce = 3},     // 17 erased
        Arrivals{.largest = 40, .received = 40, .ect = 40, .ce = 3}}) {  // more than arrived
    samples_.clear();
    UplinkBundle bundle(std::make_unique<Listener>(samples_));
    bundle.make_link(0, 256);
    bundle.on_sent(kStart, 0, {120, 120, 1500, 120 * std::size_t{1500}});
    const Instant now = kStart + std::chrono::milliseconds(20);
    bundle.on_report(now, 0, wrong);
    bundle.on_report(now, 0,
                     {.largest = 80, .received = 80, .ect = wrong.ect, .ce = wrong.ce + 40});
    EXPECT_EQ(samples_.at(0).marked, 0u);
    EXPECT_EQ(samples_.at(1).marked, 0u) << "not before the path changes";
    bundle.begin_anew(now, 0);
    bundle.on_report(now, 0,
                     {.largest = 120, .received = 120, .ect = wrong.ect + 39, .ce = wrong.ce + 41});
    EXPECT_EQ(samples_.at(2).marked, 1u);
  }
}

// A late datagram was counted as lost before, and now counts as delivered.
TEST_F(UplinkBundleTest, WhatWasReorderedIsGivenBack) {
  send(kStart, 4);
  Instant now = kStart + std::chrono::milliseconds(20);
  bundle_.on_report(now, 0, {.largest = 3, .received = 1, .received_bytes = 1500});
  EXPECT_EQ(samples_.at(0).lost, 2);
  now = now + std::chrono::milliseconds(1);
  bundle_.on_report(now, 0, {.largest = 4, .received = 4, .received_bytes = 6000});
  EXPECT_EQ(samples_.at(1).lost, -2);
  EXPECT_EQ(samples_.at(1).newly_delivered_bytes, 4500u);
}

// Jitter on one link alone may be a queue at that link's peer, so the least jitter of all links
// counts.
TEST_F(UplinkBundleTest, JitterIsThatOfTheLeastLink) {
  bundle_.make_link(1, 64);
  const auto report = [&](std::size_t link, std::uint32_t number, Duration delay) {
    const Instant now = kStart + number * std::chrono::milliseconds(5);
    bundle_.on_sent(now, link, {number, 1, 1500, 1500});
    const Instant arrived = now + delay;
    bundle_.on_report(arrived + std::chrono::milliseconds(10), link,
                      {.largest = number,
                       .received = number,
                       .received_bytes = number * 1500,
                       .arrived_us = static_cast<std::uint32_t>(arrived.ns / 1000) & 0xFFFFFF});
  };
  for (std::uint32_t number = 1; number <= 100; ++number) {
    report(0, number, std::chrono::milliseconds(10 + number % 3));
    if (number <= 50) continue;
    report(1, number - 50, std::chrono::milliseconds(10));
  }
  EXPECT_GT(samples_.at(49).jitter, std::chrono::milliseconds(1));
  EXPECT_EQ(samples_.back().jitter.count(), 0);
}

// Two links report in turns. The measured rate must be the sum of both links' rates, without steps.
TEST_F(UplinkBundleTest, TheRateIsThatOfAllLinksBetweenTwoDatagrams) {
  bundle_.make_link(1, 64);
  Instant now = kStart;
  for (std::uint32_t i = 1; i <= 60; ++i) {  // a datagram each ms, by turns: 12 Mb/s
    now = now + std::chrono::milliseconds(1);
    bundle_.on_sent(now, i % 2, {(i + 1) / 2, 1, 1500, 1500});
    if (i < 20 || i % 4 > 1) continue;
    // Link i % 2 reports that all datagrams it sent until 10 ms ago arrived.
    const std::uint32_t largest = (i - 10 + 1) / 2;
    const auto arrived_us = static_cast<std::uint32_t>((now.ns / 1000 - 5'000) & 0xFFFFFF);
    bundle_.on_report(now, i % 2,
                      {.largest = largest,
                       .received = largest,
                       .received_bytes = 1500 * largest,
                       .arrived_us = arrived_us});
  }
  ASSERT_GT(samples_.size(), 8u);
  for (std::size_t i = 8; i < samples_.size(); ++i) {
    const double rate = 8e3 * static_cast<double>(samples_[i].delivered_bytes) /
                        static_cast<double>(samples_[i].interval.count());
    EXPECT_NEAR(rate, 12, 0.1) << i;
  }
}

// The uplink does not lie between this process and a near peer, so datagrams to that peer are not
// paced.
TEST_F(UplinkBundleTest, ANearPeerIsNotPaced) {
  bundle_.make_link(1, 64);
  Instant now = kStart;
  send(now, 1);
  bundle_.on_sent(now, 1, {1, 1, 1500, 1500});
  now = now + std::chrono::microseconds(200);
  bundle_.on_report(now, 1, {.largest = 1, .received = 1, .received_bytes = 1500});
  EXPECT_EQ(samples_.size(), 0u) << "the far peer has not answered yet";
  now = kStart + std::chrono::milliseconds(50);
  bundle_.on_report(now, 0, {.largest = 1, .received = 1, .received_bytes = 1500});
  EXPECT_EQ(samples_.size(), 1u);
  bundle_.on_sent(now, 1, {2, 1, 1500, 1500});
  bundle_.on_report(now + std::chrono::microseconds(200), 1,
                    {.largest = 2, .received = 2, .received_bytes = 3000});
  EXPECT_EQ(samples_.size(), 1u);
  for (std::uint32_t i = 3; i < 40; ++i) bundle_.on_sent(now, 1, {i, 1, 1500, 1500});
  EXPECT_TRUE(bundle_.open(now));
  EXPECT_EQ(bundle_.in_flight_bytes(), 0u);
  // Unpaced traffic may fill only a part of the peer's socket.
  EXPECT_EQ(bundle_.datagrams_granted(0), UINT32_MAX);
  EXPECT_EQ(bundle_.datagrams_granted(1), (1u << 20) / 1500);
}

// A bundle with two peers. The peer of link 1 is near.
class NearPeer : public UplinkBundleTest {
 protected:
  NearPeer() {
    bundle_.make_link(1, 64);
    send(now_, 1);
    bundle_.on_sent(now_, 1, {1, 1, 1500, 1500});
    now_ = now_ + std::chrono::milliseconds(50);
    bundle_.on_report(now_, 0, {.largest = 1, .received = 1, .received_bytes = 1500});
    exchange(1, 0);
    EXPECT_EQ(bundle_.in_flight_bytes(), 0u);
  }

  // Sends the near peer datagrams in batches of 8, and reports each batch after 0.2 ms.
  void exchange(std::uint32_t batches, std::uint32_t lost_of_a_batch, std::uint16_t drops = 0) {
    for (std::uint32_t i = 0; i < batches; ++i) {
      near_sequence_ += 8;
      received_ += 8 - lost_of_a_batch;
      host_drops_ = static_cast<std::uint16_t>(host_drops_ + drops);
      bundle_.on_sent(now_, 1, {near_sequence_, 8, 1500, std::size_t{8} * 1500});
      now_ = now_ + std::chrono::microseconds(200);
      bundle_.on_report(now_, 1,
                        {.largest = near_sequence_,
                         .received = received_,
                         .received_bytes = received_ * 1500,
                         .host_drops = host_drops_});
    }
  }

  bool paced() {
    const std::size_t before = samples_.size();
    exchange(1, 0);
    return samples_.size() > before;
  }

  Instant now_ = kStart;
  std::uint32_t near_sequence_ = 1;
  std::uint32_t received_ = 1;
  std::uint16_t host_drops_ = 0;
};

// Unpaced datagrams may fill a short queue on the uplink, where paced datagrams to other peers are
// then lost.
TEST_F(NearPeer, IsPacedWhereTheNetworkLosesMuchOnTheWay) {
  exchange(31, 3);
  EXPECT_FALSE(paced()) << "too few datagrams to tell";
  exchange(1, 3);
  EXPECT_TRUE(paced());
  exchange(100, 0);
  EXPECT_TRUE(paced()) << "it loses nothing because it is paced";
}

TEST_F(NearPeer, IsNotPacedForAFewLosses) {
  exchange(200, 2);
  EXPECT_FALSE(paced());
}

TEST_F(NearPeer, IsNotPacedForWhatItsHostDropped) {
  exchange(200, 4, 3);
  EXPECT_FALSE(paced());
}

TEST_F(NearPeer, OnANewPathIsJudgedAnew) {
  exchange(64, 4);
  EXPECT_TRUE(paced());
  bundle_.begin_anew(now_, 1);
  exchange(1, 0);
  EXPECT_FALSE(paced());
}

// Records of sent datagrams are kept as long as the datagrams are in flight.
TEST_F(UplinkBundleTest, AReportMayNameADatagramOfLongAgo) {
  bundle_.make_link(1, 20'000);
  for (std::uint32_t i = 1; i <= 15'000; ++i)
    bundle_.on_sent(kStart + std::chrono::microseconds(i), 1, {i, 1, 1500, 1500});
  const auto report = [&](std::uint32_t largest) {
    bundle_.on_report(kStart + std::chrono::milliseconds(50), 1,
                      {.largest = largest, .received = largest, .received_bytes = 1500 * largest});
  };
  report(1);
  report(14'000);
  ASSERT_EQ(samples_.size(), 2u);
  EXPECT_EQ(samples_[0].rtt, std::chrono::microseconds(49'999));
  EXPECT_EQ(samples_[1].rtt, std::chrono::milliseconds(36));
  EXPECT_EQ(bundle_.in_flight_bytes(), 1000u * 1500);
}

TEST_F(UplinkBundleTest, AllAreFarUntilOneIsNot) {
  bundle_.make_link(1, 64);
  EXPECT_FALSE(bundle_.all_far()) << "nobody has answered";
  send(kStart, 1);
  bundle_.on_sent(kStart, 1, {1, 1, 1500, 1500});
  bundle_.on_report(kStart + std::chrono::milliseconds(20), 0,
                    {.largest = 1, .received = 1, .received_bytes = 1500});
  EXPECT_TRUE(bundle_.all_far());
  const Instant later = kStart + std::chrono::milliseconds(30);
  bundle_.on_sent(later, 1, {2, 1, 1500, 1500});
  bundle_.on_report(later + std::chrono::microseconds(200), 1,
                    {.largest = 2, .received = 2, .received_bytes = 3000});
  EXPECT_FALSE(bundle_.all_far());
}

TEST_F(UplinkBundleTest, LinksThatMayNotSendYetKeepTheirTurns) {
  send(kStart, 1);
  bundle_.on_report(kStart + std::chrono::milliseconds(20), 0,
                    {.largest = 1, .received = 1, .received_bytes = 1500});
  Instant now = kStart + std::chrono::milliseconds(30);
  bundle_.on_sent(now, 0, {2, 2, 1500, 3000}, 1.0 / 3);  // 0.2 ms at 120 Mb/s
  EXPECT_FALSE(bundle_.open(now + std::chrono::microseconds(200)));
  EXPECT_TRUE(bundle_.open(now + std::chrono::microseconds(600)));
}

TEST_F(UplinkBundleTest, TheTimeThatAReceiverHeldBackIsNoRoundTrip) {
  send(kStart, 1);
  bundle_.on_report(kStart + std::chrono::milliseconds(20), 0,
                    {.largest = 1,
                     .received = 1,
                     .received_bytes = 1500,
                     .held_back = std::chrono::milliseconds(5)});
  EXPECT_EQ(samples_.at(0).rtt, std::chrono::milliseconds(15));
}

TEST_F(UplinkBundleTest, QueueingIsOneWayDelayAboveItsLeastWhateverTheClocks) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Instant now = kStart + i * std::chrono::milliseconds(30);
    send(now, 1);
    const std::uint32_t extra_us = i == 2 ? 7000 : 0;
    const auto arrived_us = static_cast<std::uint32_t>(now.ns / 1000) + 10'000 + extra_us;
    bundle_.on_report(now + std::chrono::milliseconds(20), 0,
                      {.largest = sequence_,
                       .received = sequence_,
                       .received_bytes = sequence_ * 1500,
                       .arrived_us = (arrived_us + 3'000'000'000u) & 0xFFFFFF});
  }
  EXPECT_EQ(samples_.at(1).queueing, Duration(0));
  EXPECT_EQ(samples_.at(2).queueing, std::chrono::milliseconds(7));
}

TEST_F(UplinkBundleTest, AFullWindowClosesAndAReportOpens) {
  send(kStart, 20);
  const Instant later = kStart + std::chrono::milliseconds(20);
  EXPECT_FALSE(bundle_.open(later));
  bundle_.on_report(later, 0, {.largest = 10, .received = 10, .received_bytes = 15'000});
  EXPECT_TRUE(bundle_.open(later));
}

TEST_F(UplinkBundleTest, AsksEveryQuarterRoundTripAndBeforeTheWindowIsFull) {
  EXPECT_TRUE(bundle_.asks(kStart, 0));
  bundle_.on_asked(kStart, 0);
  EXPECT_FALSE(bundle_.asks(kStart + std::chrono::milliseconds(2), 0));
  EXPECT_TRUE(bundle_.asks(kStart + std::chrono::microseconds(2500), 0));
  send(kStart, 19);
  EXPECT_TRUE(bundle_.asks(kStart, 0));
}

// After a silence, datagrams are written off, so that the window has room for a datagram that asks
// for a report.
TEST_F(UplinkBundleTest, SilenceWithAFullWindowLetsItSendAgain) {
  bundle_.on_asked(kStart, 0);
  send(kStart, 20);
  bundle_.note_held_back();
  const Instant wake = bundle_.next_wake();
  EXPECT_EQ(wake, kStart + std::chrono::milliseconds(30));
  bundle_.on_wake(wake);
  EXPECT_TRUE(bundle_.open(wake));
  EXPECT_EQ(bundle_.pace().bits_per_second, 120e6);
}

TEST_F(UplinkBundleTest, SilenceAfterThreeQuestionsHalvesThePace) {
  for (int i = 0; i < 3; ++i) bundle_.on_asked(kStart, 0);
  Instant wake = bundle_.next_wake();
  bundle_.on_wake(wake);
  EXPECT_EQ(bundle_.pace().bits_per_second, 60e6);
  wake = bundle_.next_wake();
  bundle_.on_wake(wake);
  EXPECT_EQ(bundle_.pace().bits_per_second, 30e6);
  send(wake, 1);
  bundle_.on_report(wake, 0, {.largest = 1, .received = 1, .received_bytes = 1500});
  EXPECT_EQ(bundle_.pace().bits_per_second, 120e6);
}

// After long silence the pace is a thousandth of what it was, so that four packets take 0.4 s. The
// bundle once waited for that time even after the first answer.
TEST_F(UplinkBundleTest, SilenceIsOverAtTheFirstAnswer) {
  for (int i = 0; i < 3; ++i) bundle_.on_asked(kStart, 0);
  Instant now = kStart;
  for (int i = 0; i < 40; ++i) {
    now = bundle_.next_wake();
    bundle_.on_wake(now);
  }
  EXPECT_EQ(bundle_.pace().bits_per_second, 120e6 / 1024);
  send(now, 4);
  EXPECT_FALSE(bundle_.open(now));
  const Instant heard = now + std::chrono::milliseconds(20);
  bundle_.on_report(heard, 0, {.largest = 4, .received = 4, .received_bytes = 6000});
  EXPECT_TRUE(bundle_.open(heard));
}

TEST(UplinkBundleSilence, ASlowPaceStillAsksTwiceASecond) {
  UplinkBundle bundle(
      make_controller({.control = CongestionControl::fixed, .rate_bits_per_second = 1'000'000}));
  bundle.make_link(0, 64);
  for (int i = 0; i < 3; ++i) bundle.on_asked(kStart, 0);
  Instant now = kStart;
  for (int i = 0; i < 40; ++i) {
    now = bundle.next_wake();
    bundle.on_wake(now);
  }
  bundle.on_sent(now, 0, {.last = 2, .datagrams = 2, .segment_bytes = 1500, .total_bytes = 3000});
  EXPECT_FALSE(bundle.open(now + std::chrono::milliseconds(400)));
  EXPECT_TRUE(bundle.open(now + std::chrono::milliseconds(500)));
}

// The bytes in any millisecond must be at most rate * 1 ms * 1.05, plus a quantum, plus half a
// quantum of unused allowance that may be caught up.
TEST(UplinkBundlePacing, NoMillisecondHoldsMoreThanItsRateAndAQuantum) {
  for (const double rate : {10e6, 100e6, 1e9, 10e9}) {
    Bottleneck line({.bits_per_second = 20e9, .rtt_seconds = 0.001});
    const std::size_t flow =
        line.add(FlowOptions{.control = CongestionControl::fixed,
                             .rate_bits_per_second = static_cast<std::uint64_t>(rate),
                             .links = 3});
    const auto quantum = static_cast<double>(line.bundle(flow).quantum_bytes());
    std::deque<std::pair<Instant, std::size_t>> last;
    double bytes = 0;
    double most = 0;
    line.on_train = [&](std::size_t, Instant at, std::size_t train) {
      last.emplace_back(at, train);
      bytes += static_cast<double>(train);
      for (; at - last.front().first >= std::chrono::milliseconds(1); last.pop_front()) {
        bytes -= static_cast<double>(last.front().second);
      }
      most = std::max(most, bytes);
    };
    line.run_until(0.2);
    EXPECT_LE(most, rate / 8e3 * 1.05 + 1.5 * quantum) << rate;
    EXPECT_NEAR(line.share(flow) * 20e9, rate, rate * 0.01) << rate;
  }
}

// A controller with a pace and no window.
class Metronome final : public Controller {
 public:
  explicit Metronome(std::size_t quantum_bytes) : quantum_bytes_(quantum_bytes) {}
  void on_sample(const Sample&) override {}
  Pace pace() const override {
    return {.bits_per_second = 120e6, .in_flight_bytes = 1 << 30, .quantum_bytes = quantum_bytes_};
  }

 private:
  std::size_t quantum_bytes_;
};

struct LateHost {
  Duration sleeps;
  Duration round_trip;
  std::size_t quantum_bytes = 0;  // quantum that the controller names
};

// Returns the share of its pace that a host sends if it sleeps for a while whenever it has nothing
// to send.
double share_sent(const LateHost& host) {
  UplinkBundle bundle(std::make_unique<Metronome>(host.quantum_bytes));
  bundle.make_link(0, 1024);
  std::uint32_t sequence = 0;
  Instant now = kStart;
  const auto send = [&](std::size_t bytes) {
    bundle.on_sent(now, 0, {++sequence, 1, static_cast<std::uint32_t>(bytes), bytes});
  };
  for (int i = 0; i < 100; ++i) {
    send(100);
    now = now + host.round_trip;
    bundle.on_report(now, 0, {.largest = sequence, .received = sequence});
  }
  double sent = 0;
  const Instant begin = now;
  for (int i = 0; i < 100; ++i) {
    now = now + host.sleeps;
    for (; bundle.opens_at() <= now; sent += static_cast<double>(bundle.quantum_bytes()))
      send(bundle.quantum_bytes());
  }
  return sent * 8e9 / (120e6 * static_cast<double>((now - begin).count()));
}

TEST(UplinkBundlePacing, AHostThatSleepsLongerThanATrainTakesLosesNoneOfItsRate) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  EXPECT_GT(share_sent({microseconds(600), milliseconds(20)}), 0.95);
  EXPECT_GT(share_sent({microseconds(600), milliseconds(100)}), 0.95);
}

// The allowance of a host that sleeps longer must not become a burst later.
TEST(UplinkBundlePacing, AHostCatchesUpByHalfAMillisecondAtMost) {
  using std::chrono::milliseconds;
  EXPECT_LE(share_sent({milliseconds(20), milliseconds(500)}), 0.8 / 20);
}

TEST(UplinkBundlePacing, OnAShortWayAHostCatchesUpByHalfATrain) {
  using std::chrono::microseconds;
  EXPECT_LE(share_sent({microseconds(1000), microseconds(200)}), 0.5);
  EXPECT_LE(share_sent({microseconds(1000), microseconds(20'000), 3000}), 0.5);
}

TEST(UplinkBundlePacing, WhenFeedbackDiesAlmostNothingIsSentAfterASecond) {
  Bottleneck line({.bits_per_second = 100e6, .rtt_seconds = 0.02});
  const std::size_t flow = line.add(FlowOptions{
      .control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000, .links = 3});
  line.run_until(2);
  line.mute(flow);
  line.run_until(3);
  line.reset();
  line.run_until(4);
  EXPECT_LT(line.share(flow), 0.01);
}

}  // namespace
}  // namespace leeway::congestion
