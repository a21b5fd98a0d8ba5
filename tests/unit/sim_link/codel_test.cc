#include "link/codel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <vector>

#include "engine/random_stream.h"
#include "link/queue.h"
#include "support/time_units.h"

namespace leeway::sim {
namespace {

using testing::kMs;

constexpr std::int64_t kTarget = 5 * kMs;
constexpr std::int64_t kInterval = 100 * kMs;

// Returns the times in ms of the packets that CoDel hits, if one is dequeued every ms after the
// same wait.
std::vector<std::int64_t> hits(std::int64_t sojourn_ns, int packets, bool mark) {
  Codel codel(kTarget, kInterval, 0);
  std::vector<std::int64_t> times;
  for (int i = 0; i < packets; ++i) {
    if (codel.hit(i * kMs, sojourn_ns, mark)) times.push_back(i);
  }
  return times;
}

TEST(Codel, SparesAQueueBelowItsTarget) {
  EXPECT_TRUE(hits(kTarget - 1, 1000, false).empty());
}

// The first hit comes after one interval, and the next at intervals of 100 / sqrt(count) ms: +100,
// +70.7, +57.7, +50, .... Packets come at whole ms.
TEST(Codel, HitsAtTheIntervalsOfTheControlLaw) {
  EXPECT_EQ(hits(kTarget, 500, true),
            (std::vector<std::int64_t>{100, 200, 271, 329, 379, 424, 464}));
}

TEST(Codel, NeedsAWholeIntervalAboveTheTarget) {
  Codel codel(kTarget, kInterval, 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(codel.hit(i * kMs, i % 90 == 0 ? kTarget - 1 : 10 * kTarget, false)) << i;
  }
}

TEST(Codel, SendsThePacketAfterTheFirstDrop) {
  Codel codel(kTarget, kInterval, 0);
  EXPECT_FALSE(codel.hit(0, kTarget, false));
  EXPECT_TRUE(codel.hit(kInterval, kTarget, false));
  EXPECT_FALSE(codel.hit(kInterval, kTarget, false));
  EXPECT_FALSE(codel.hit(2 * kInterval - 1, kTarget, false));
  EXPECT_TRUE(codel.hit(2 * kInterval, kTarget, false));
}

TEST(Codel, ForgetsAQueueThatWasEmpty) {
  Codel codel(kTarget, kInterval, 0);
  EXPECT_FALSE(codel.hit(0, kTarget, false));
  EXPECT_FALSE(codel.hit(kInterval - 1, 0, false));
  EXPECT_FALSE(codel.hit(kInterval, kTarget, false));
  EXPECT_TRUE(codel.hit(2 * kInterval, kTarget, false));
}

TEST(Codel, TakesAFullPacketsTimeForATargetBelowIt) {
  Codel codel(kTarget, kInterval, 12 * kMs);
  EXPECT_FALSE(codel.hit(0, 12 * kMs - 1, false));
  EXPECT_FALSE(codel.hit(kInterval, 12 * kMs - 1, false));
  EXPECT_FALSE(codel.hit(kInterval, 12 * kMs, false));
  EXPECT_TRUE(codel.hit(2 * kInterval, 12 * kMs, false));
}

// RFC 8289, section 5, literally: a queue with a dequeue that drops from its head. Only the test on
// the queue's bytes is left out, as link/codel.h says.
class RfcQueue {
 public:
  struct Packet {
    std::size_t number;
    std::int64_t arrival_ns;
    std::uint32_t bytes;
  };

  void push(Packet packet) { queue_.push_back(packet); }

  std::optional<Packet> deque(std::int64_t now) {
    Found found = do_dequeue(now);
    if (dropping_) {
      if (!found.ok_to_drop) dropping_ = false;
      while (now >= drop_next_ && dropping_) {
        dropped.push_back(found.packet->number);
        ++count_;
        found = do_dequeue(now);
        if (!found.ok_to_drop) {
          dropping_ = false;
        } else {
          drop_next_ = control_law(drop_next_);
        }
      }
    } else if (found.ok_to_drop) {
      dropped.push_back(found.packet->number);
      found = do_dequeue(now);
      dropping_ = true;
      const std::int64_t delta = count_ - last_count_;
      count_ = delta > 1 && now - drop_next_ < 16 * interval ? delta : 1;
      drop_next_ = control_law(now);
      last_count_ = count_;
    }
    return found.packet;
  }

  std::int64_t target = 0;
  std::int64_t interval = 0;
  std::vector<std::size_t> dropped;

 private:
  struct Found {
    std::optional<Packet> packet;
    bool ok_to_drop = false;
  };

  Found do_dequeue(std::int64_t now) {
    if (queue_.empty()) {
      first_above_.reset();
      return {};
    }
    Found found{queue_.front()};
    queue_.pop_front();
    if (now - found.packet->arrival_ns < target) {
      first_above_.reset();
    } else if (!first_above_) {
      first_above_ = now + interval;
    } else {
      found.ok_to_drop = now >= *first_above_;
    }
    return found;
  }

  std::int64_t control_law(std::int64_t from) const {
    return from + static_cast<std::int64_t>(std::floor(static_cast<double>(interval) /
                                                       std::sqrt(static_cast<double>(count_))));
  }

  std::deque<Packet> queue_;
  std::optional<std::int64_t> first_above_;
  bool dropping_ = false;
  std::int64_t drop_next_ = 0;
  std::int64_t count_ = 0;
  std::int64_t last_count_ = 0;
};

// Loads of 167 % and 71 % alternate, so that CoDel starts again within 16 intervals. Pauses empty
// the queue and let CoDel forget.
std::vector<RfcQueue::Packet> bursty_arrivals(std::uint64_t seed) {
  RandomStream random(seed, 0, Purpose::workload);
  std::vector<RfcQueue::Packet> packets;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < 20'000; ++i) {
    const std::uint64_t gap = i / (200 * (seed + 1)) % 2 == 0 ? 600 : 1400;
    now += static_cast<std::int64_t>(random.below(gap) + (i % 4000 == 3999 ? 600'000 : 0));
    packets.push_back({i, now, static_cast<std::uint32_t>(1 + random.below(1000))});
  }
  return packets;
}

// Sends one byte per ns, so that every time is whole.
std::vector<std::optional<std::int64_t>> run_rfc(const std::vector<RfcQueue::Packet>& packets,
                                                 RfcQueue& queue) {
  std::vector<std::optional<std::int64_t>> departures(packets.size());
  std::int64_t free = 0;
  std::size_t next = 0;
  while (true) {
    // A packet that comes before the link is free waits. One that comes later is sent at once.
    while (next < packets.size() && packets[next].arrival_ns < free) queue.push(packets[next++]);
    if (const auto packet = queue.deque(free)) {
      free += packet->bytes;
      departures[packet->number] = free;
    } else if (next < packets.size()) {
      free = std::max(free, packets[next].arrival_ns);
      queue.push(packets[next++]);
    } else {
      return departures;
    }
  }
}

TEST(CodelQueue, DropsAndSendsWhatTheRfcsDequeueDoes) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto packets = bursty_arrivals(seed);
    RfcQueue rfc;
    rfc.target = 5'000;
    rfc.interval = 30'000;
    const auto expected = run_rfc(packets, rfc);
    Queue queue = Queue::make({.bits_per_second = 8'000'000'000,
                               .max_bytes = 1u << 30,
                               .codel_target_ns = rfc.target,
                               .codel_interval_ns = rfc.interval,
                               .codel_packet_bytes = 1000},
                              seed, 0)
                      .value();
    std::size_t late = 0;
    for (const auto& packet : packets) {
      const Passage passage = queue.enqueue(packet.arrival_ns, packet.bytes);
      late += passage.fate == QueueFate::late;
      const auto& departure = expected[packet.number];
      ASSERT_EQ(passage.dropped(), !departure) << "packet " << packet.number;
      if (!departure) continue;
      ASSERT_EQ(passage.departure_ns, *departure) << "packet " << packet.number;
    }
    EXPECT_EQ(late, rfc.dropped.size());
    EXPECT_GT(rfc.dropped.size(), 100u);
  }
}

// Packets of 10 ns wait 0, 10, 20 and 30 ns. From 10 ns on, waits reach the target. One interval of
// 20 ns later the wait is 30 ns, and that packet is dropped.
TEST(CodelQueue, KeepsADroppedPacketUntilTheLineWouldHaveTakenIt) {
  Queue queue = Queue::make({.bits_per_second = 8'000'000'000,
                             .codel_target_ns = 10,
                             .codel_interval_ns = 20,
                             .codel_packet_bytes = 1},
                            1, 0)
                    .value();
  for (const std::int64_t departure : {10, 20, 30}) {
    EXPECT_EQ(queue.enqueue(0, 10).departure_ns, departure);
  }
  const Passage late = queue.enqueue(0, 10);
  EXPECT_EQ(late.fate, QueueFate::late);
  EXPECT_EQ(late.departure_ns, 30);
  EXPECT_EQ(queue.enqueue(0, 10).departure_ns, 40);
  EXPECT_EQ(queue.waiting_packets(29), 3u);
  EXPECT_EQ(queue.waiting_packets(30), 1u);
}

TEST(CodelQueue, MarksInsteadOfDroppingWhatIsEcnCapable) {
  Queue queue = Queue::make({.bits_per_second = 8'000'000'000,
                             .codel_target_ns = 5'000,
                             .codel_interval_ns = 30'000,
                             .codel_packet_bytes = 1000},
                            1, 0)
                    .value();
  int marked = 0;
  for (int i = 0; i < 500; ++i) {
    const Passage passage = queue.enqueue(i * 500, 1000, true);
    EXPECT_FALSE(passage.dropped());
    marked += passage.fate == QueueFate::marked;
  }
  EXPECT_GT(marked, 10);
}

}  // namespace
}  // namespace leeway::sim
