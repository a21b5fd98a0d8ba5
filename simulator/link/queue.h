// A queue before a line of fixed or recorded capacity, as arithmetic: a packet's fate and the time
// its last bit is out are known when it comes, because nothing that comes later can change them in
// a first-in first-out queue. No event is needed, and a packet costs a division.
//
// Promises: departures in the order of arrival, exact to the nanosecond (serializer.h); offered =
// delivered + dropped in packets at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "engine/probability.h"
#include "engine/random_stream.h"
#include "leeway/status.h"
#include "link/codel.h"
#include "link/queue_options.h"
#include "link/serializer.h"
#include "link/trace_line.h"

namespace leeway::sim {

enum class QueueFate : std::uint8_t {
  sent,
  marked,   // sent with ECN's "congestion experienced"
  trimmed,  // sent, cut short
  full,     // dropped on arrival, no room
  early,    // dropped on arrival by RED
  late,     // dropped at the head by CoDel, at departure_ns
};

struct Passage {
  QueueFate fate = QueueFate::sent;
  std::int64_t departure_ns = 0;  // last bit out; of no meaning for full and early
  std::uint32_t bytes = 0;        // sent; fewer than came if trimmed, 0 if dropped

  bool dropped() const { return fate >= QueueFate::full; }
};

// Since the start. Packets that still wait count as what will become of them.
struct QueueCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t offered_bytes = 0;
  std::uint64_t sent_packets = 0;  // marked and trimmed ones included
  std::uint64_t sent_bytes = 0;
  std::uint64_t marked_packets = 0;
  std::uint64_t trimmed_packets = 0;
  std::uint64_t full_packets = 0;
  std::uint64_t early_packets = 0;
  std::uint64_t late_packets = 0;
};

// The packets in a queue and when each leaves it; a ring that grows to what is used of it.
class WaitingPackets {
 public:
  void push(std::int64_t until_ns, std::uint32_t bytes);
  // Forgets what has left by now; a packet that leaves now has left.
  void advance(std::int64_t now_ns) {
    while (first_ != end_ && ring_[first_ & mask_].until_ns <= now_ns) {
      bytes_ -= ring_[first_++ & mask_].bytes;
    }
  }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t packets() const { return end_ - first_; }

  // What the next calls will touch, four packets to a cache line.
  void prefetch() const {
    __builtin_prefetch(&ring_[first_ & mask_]);
    __builtin_prefetch(&ring_[(first_ + 4) & mask_]);
    __builtin_prefetch(&ring_[end_ & mask_], 1);
  }

 private:
  struct Waiting {
    std::int64_t until_ns = 0;
    std::uint32_t bytes = 0;
  };
  void grow();

  std::vector<Waiting> ring_ = std::vector<Waiting>(4);  // a power of two
  std::size_t mask_ = 3;
  std::size_t first_ = 0;  // counts of packets; the place is the count modulo the size
  std::size_t end_ = 0;
  std::uint64_t bytes_ = 0;
};

class Queue {
 public:
  static Result<Queue> make(const QueueOptions& options, std::uint64_t seed, std::uint64_t link);

  // A packet of 1 to Serializer::kBytesMax bytes comes. Times must not go back.
  Passage enqueue(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable = false);

  // In the queue now, the packet on the line included. Times must not go back.
  std::uint64_t waiting_bytes(std::int64_t now_ns);
  std::size_t waiting_packets(std::int64_t now_ns);

  const QueueCounters& counters() const { return counters_; }

  // A packet will come soon.
  void prefetch() const {
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    for (std::size_t at = 0; at < sizeof(Queue); at += 64) __builtin_prefetch(begin + at, 1);
    waiting_.prefetch();
  }

 private:
  Queue(const QueueOptions& options, const RandomStream& random);

  std::int64_t start_of(std::int64_t now_ns);
  bool fits(std::uint32_t bytes, std::uint64_t limit) const;
  bool hit_by_red();
  Passage trim(std::int64_t now_ns, std::uint32_t bytes);
  Passage admit(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable, bool mark);
  Passage send(std::int64_t now_ns, std::uint32_t bytes, QueueFate fate);
  void count(const Passage& passage);

  QueueOptions options_;
  std::variant<Serializer, TraceLine> line_;
  std::optional<Codel> codel_;
  WaitingPackets waiting_;
  RandomStream random_;
  QueueCounters counters_;
};

}  // namespace leeway::sim
