#include "link/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "replicas.h"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kByteEachNs = 8'000'000'000;  // a packet takes as many ns as it has bytes

Queue queue(QueueOptions options, std::uint64_t seed = 1) {
  options.bits_per_second = kByteEachNs;
  return Queue::make(options, seed, 0).value();
}

TEST(Queue, SendsAtOnceWhenEmpty) {
  Queue line = queue({});
  const Passage passage = line.enqueue(1000, 150);
  EXPECT_EQ(passage.fate, QueueFate::sent);
  EXPECT_EQ(passage.departure_ns, 1150);
  EXPECT_EQ(passage.bytes, 150u);
}

TEST(Queue, FollowsAScheduleComputedByHand) {
  Queue line = queue({});
  EXPECT_EQ(line.enqueue(0, 100).departure_ns, 100);
  EXPECT_EQ(line.enqueue(0, 50).departure_ns, 150);
  EXPECT_EQ(line.enqueue(120, 30).departure_ns, 180);
  EXPECT_EQ(line.waiting_bytes(120), 80u);  // 50 of them on the line, 30 behind it
  EXPECT_EQ(line.waiting_packets(149), 2u);
  EXPECT_EQ(line.waiting_packets(150), 1u);
  EXPECT_EQ(line.waiting_bytes(180), 0u);
  EXPECT_EQ(line.enqueue(500, 10).departure_ns, 510);
}

TEST(Queue, DropsWhatDoesNotFitItsBytes) {
  Queue line = queue({.max_bytes = 250});
  EXPECT_EQ(line.enqueue(0, 100).departure_ns, 100);
  EXPECT_EQ(line.enqueue(0, 100).departure_ns, 200);
  EXPECT_EQ(line.enqueue(0, 51).fate, QueueFate::full);
  EXPECT_EQ(line.enqueue(0, 50).departure_ns, 250);  // fits exactly
  EXPECT_EQ(line.enqueue(99, 1).fate, QueueFate::full);
  EXPECT_EQ(line.enqueue(100, 100).departure_ns, 350);  // the first has left
}

TEST(Queue, DropsWhatDoesNotFitItsPackets) {
  Queue line = queue({.max_packets = 2});
  EXPECT_FALSE(line.enqueue(0, 10).dropped());
  EXPECT_FALSE(line.enqueue(0, 10).dropped());
  EXPECT_EQ(line.enqueue(0, 10).fate, QueueFate::full);
  EXPECT_EQ(line.enqueue(10, 10).departure_ns, 30);
}

TEST(Queue, HoldsAsManyPacketsAsItMay) {
  Queue line = queue({.max_packets = 1000});
  // These packets move the ring's beginning away from its start.
  for (int i = 0; i < 40; ++i) line.enqueue(i / 2, 1);
  for (int i = 0; i < 1000; ++i) line.enqueue(1000, 1);
  EXPECT_EQ(line.waiting_packets(1000), 1000u);
  EXPECT_EQ(line.enqueue(1000, 1).fate, QueueFate::full);
  EXPECT_EQ(line.waiting_packets(1700), 300u);
  EXPECT_EQ(line.waiting_bytes(1700), 300u);
}

TEST(Queue, MarksAtTheThresholdWhatIsEcnCapable) {
  Queue line = queue({.red_min_bytes = 200, .red_max_bytes = 200});
  EXPECT_EQ(line.enqueue(0, 100, true).fate, QueueFate::sent);
  EXPECT_EQ(line.enqueue(0, 99, true).fate, QueueFate::sent);
  EXPECT_EQ(line.enqueue(0, 1, true).fate, QueueFate::sent);  // finds 199
  const Passage marked = line.enqueue(0, 100, true);          // finds 200
  EXPECT_EQ(marked.fate, QueueFate::marked);
  EXPECT_EQ(marked.departure_ns, 300);
  EXPECT_EQ(line.enqueue(0, 100, false).fate, QueueFate::early);
  EXPECT_EQ(line.enqueue(199, 10, true).fate, QueueFate::sent);  // finds 101
}

TEST(Queue, HitsWithAProbabilityThatRisesWithTheQueue) {
  constexpr int kQueues = 4000;
  const QueueOptions options{.red_min_bytes = 100, .red_max_bytes = 300, .red_probability = 0.8};
  for (const auto& [found, share] : std::vector<std::pair<std::uint32_t, double>>{
           {100, 0}, {150, 0.2}, {200, 0.4}, {299, 0.796}}) {
    int hits = 0;
    for (int seed = 0; seed < kQueues; ++seed) {
      Queue line = queue(options, static_cast<std::uint64_t>(seed));
      line.enqueue(0, found);
      hits += line.enqueue(0, 10).fate == QueueFate::early;
    }
    EXPECT_NEAR(hits, share * kQueues, 4 * std::sqrt(share * (1 - share) * kQueues)) << found;
  }
}

TEST(Queue, TrimsWhatDoesNotFit) {
  Queue line = queue({.max_bytes = 200, .trim_bytes = 20, .trim_room_bytes = 30});
  line.enqueue(0, 100);
  line.enqueue(0, 100);
  const Passage trimmed = line.enqueue(0, 100);
  EXPECT_EQ(trimmed.fate, QueueFate::trimmed);
  EXPECT_EQ(trimmed.bytes, 20u);
  EXPECT_EQ(trimmed.departure_ns, 220);
  EXPECT_EQ(line.enqueue(0, 100).fate, QueueFate::full);  // only 10 bytes of the room are left
  const Passage small = line.enqueue(0, 10);
  EXPECT_EQ(small.fate, QueueFate::sent);
  EXPECT_EQ(small.departure_ns, 230);
}

TEST(Queue, SendsWhenARecordedLineCan) {
  Queue line =
      Queue::make({.deliveries_ns = {100, 200}, .delivery_bytes = 50, .max_bytes = 120}, 1, 0)
          .value();
  EXPECT_EQ(line.enqueue(0, 50).departure_ns, 100);
  EXPECT_EQ(line.enqueue(0, 60).departure_ns, 300);
  EXPECT_EQ(line.waiting_bytes(99), 110u);
  EXPECT_EQ(line.enqueue(99, 20).fate, QueueFate::full);
  EXPECT_EQ(line.enqueue(100, 20).departure_ns, 300);
}

// Two packets come each microsecond, but only one can leave.
TEST(Queue, RunsCodelOverARecordedLine) {
  Queue line = Queue::make({.deliveries_ns = {1000},
                            .delivery_bytes = 1000,
                            .codel_target_ns = 5'000,
                            .codel_interval_ns = 30'000,
                            .codel_packet_bytes = 1000},
                           1, 0)
                   .value();
  std::int64_t last = 0;
  std::int64_t sent = 0;
  int late = 0;
  for (int i = 0; i < 2000; ++i) {
    const Passage passage = line.enqueue(i * 500, 1000);
    late += passage.fate == QueueFate::late;
    if (passage.dropped()) continue;
    last = passage.departure_ns;
    ++sent;
  }
  EXPECT_EQ(last, 1000 * sent);
  EXPECT_GT(late, 100);
}

// Every packet waits 9,999 ns. That is more than the target, but the line cannot be faster.
TEST(Queue, SparesPacketsThatCodelCannotMakeFaster) {
  Queue line = Queue::make({.deliveries_ns = {10'000, 20'000},
                            .delivery_bytes = 1000,
                            .codel_target_ns = 5'000,
                            .codel_interval_ns = 30'000,
                            .codel_packet_bytes = 1000},
                           1, 0)
                   .value();
  for (int i = 0; i < 100; ++i) {
    const Passage passage = line.enqueue(i * 10'000 + 1, 1000);
    EXPECT_EQ(passage.fate, QueueFate::sent);
    EXPECT_EQ(passage.departure_ns, (i + 1) * 10'000);
  }
}

// All reasons to drop apply at once. The bytes that leave must be those that the queue says it
// sent.
TEST(Queue, SendsWhatItDoesNotDrop) {
  Queue line = queue({.max_bytes = 5000,
                      .red_min_bytes = 2000,
                      .red_max_bytes = 4900,
                      .codel_target_ns = 1000,
                      .codel_interval_ns = 20'000,
                      .codel_packet_bytes = 1});
  RandomStream random(1, 0, Purpose::workload);
  std::map<QueueFate, int> seen;
  std::int64_t now = 0, out = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<std::int64_t>(random.below(1000));
    const auto bytes = static_cast<std::uint32_t>(1 + random.below(1100));
    const Passage passage = line.enqueue(now, bytes, random.below(4) == 0);
    ++seen[passage.fate];
    ASSERT_EQ(passage.bytes, passage.dropped() ? 0 : bytes);
    if (passage.dropped()) continue;
    out = std::max(out, now) + bytes;
    ASSERT_EQ(passage.departure_ns, out);
  }
  for (const auto fate :
       {QueueFate::sent, QueueFate::marked, QueueFate::full, QueueFate::early, QueueFate::late}) {
    EXPECT_GT(seen[fate], 0);
  }
}

// Little's law: the number of packets in the queue, summed over time, equals their waits, summed
// over packets.
TEST(Queue, ObeysLittlesLaw) {
  Queue line = queue({.max_bytes = 3000});
  RandomStream random(2, 0, Purpose::workload);
  std::int64_t next = 0;
  std::int64_t over_packets = 0, over_time = 0;
  int full = 0;
  for (std::int64_t now = 0; now < 200'000; ++now) {
    for (; next == now && now < 190'000; next += static_cast<std::int64_t>(random.below(200))) {
      const auto bytes = static_cast<std::uint32_t>(1 + random.below(220));
      const Passage passage = line.enqueue(now, bytes);
      full += passage.fate == QueueFate::full;
      if (!passage.dropped()) over_packets += passage.departure_ns - now;
    }
    over_time += static_cast<std::int64_t>(line.waiting_packets(now));
  }
  EXPECT_GT(full, 0);
  EXPECT_EQ(over_time, over_packets);
}

// Pollaczek and Khinchine: Poisson arrivals at load 0.8 wait 0.8 / (2 (1 - 0.8)) = 2 packet times.
TEST(Queue, MakesPoissonArrivalsWaitAsLongAsTheoryHasIt) {
  Replicas waits;
  for (int seed = 0; seed < 40; ++seed) {
    Queue line = queue({});
    RandomStream random(static_cast<std::uint64_t>(seed), 1, Purpose::workload);
    double time = 0, wait = 0;
    constexpr int kPackets = 20'000;
    for (int i = 0; i < kPackets; ++i) {
      time += -std::log(1 - random.unit53()) * 1000 / 0.8;
      const auto now = static_cast<std::int64_t>(time);
      wait += static_cast<double>(line.enqueue(now, 1000).departure_ns - now - 1000);
    }
    waits.add(wait / kPackets / 1000);
  }
  // The empty start lowers the mean by less than 1e-2, and whole ns by less than 1e-3.
  EXPECT_NEAR(waits.mean(), 2.0, 4.6 * waits.standard_error() + 0.01);
  EXPECT_LT(waits.standard_error(), 0.05);
}

}  // namespace
}  // namespace leeway::sim
