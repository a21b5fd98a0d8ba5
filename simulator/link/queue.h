// A queue before a line of fixed or recorded capacity, computed without events. In a first-in
// first-out queue later packets cannot delay earlier ones. So a packet's fate, and the time when
// its last bit is sent, are known when it comes. A packet costs a division.
//
// Promises: packets depart in the order of arrival, exact to the nanosecond (serializer.h). At any
// time offered = delivered + dropped, in packets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/contracts.h"
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
  std::int64_t departure_ns = 0;  // time when the last bit is out; no meaning for full and early
  std::uint32_t bytes = 0;        // bytes that are sent; fewer than came if trimmed, 0 if dropped

  bool dropped() const { return fate >= QueueFate::full; }
};

// The packets in a queue, and when each leaves it: a ring that grows with use.
class WaitingPackets {
 public:
  void push(std::int64_t until_ns, std::uint32_t bytes) {
    if (packets() > mask_) grow();
    ring_[end_++ & mask_] = {until_ns, bytes};
    bytes_ += bytes;
  }
  // Forgets the packets that have left by now; a packet that leaves now counts as having left.
  void advance(std::int64_t now_ns) {
    while (first_ != end_ && ring_[first_ & mask_].until_ns <= now_ns) {
      bytes_ -= ring_[first_++ & mask_].bytes;
    }
  }
  std::uint64_t bytes() const { return bytes_; }
  std::uint32_t packets() const { return end_ - first_; }

  // Fetches the memory that the next calls will touch into the cache.
  void prefetch() const {
    __builtin_prefetch(&ring_[first_ & mask_]);
    __builtin_prefetch(&ring_[end_ & mask_], 1);
  }

 private:
  struct Waiting {
    std::int64_t until_ns = 0;
    std::uint32_t bytes = 0;
  };
  void grow();

  std::unique_ptr<Waiting[]> ring_ = std::make_unique<Waiting[]>(4);
  std::uint32_t mask_ = 3;   // number of places, a power of two, less 1
  std::uint32_t first_ = 0;  // counts of packets; modulo mask_ + 1 they are places in the ring
  std::uint32_t end_ = 0;
  std::uint64_t bytes_ = 0;
};

// A queue that only drops what does not fit takes two cache lines. That matters because a run may
// use thousands of queues in random order.
class alignas(128) Queue {
 public:
  static Result<Queue> make(const QueueOptions& options, std::uint64_t seed, std::uint64_t link);

  // Decides the fate of a packet that comes now. `bytes` is 1 to Serializer::kBytesMax. Times must
  // not go back.
  Passage enqueue(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable = false) {
    LEEWAY_ASSERT(bytes > 0 && bytes <= Serializer::kBytesMax);
    waiting_.advance(now_ns);
    if (special_ != nullptr) return judge(now_ns, bytes, ecn_capable);
    if (!fits(bytes, max_bytes_)) return {QueueFate::full, 0, 0};
    return sent(line_.send(now_ns, bytes), bytes, QueueFate::sent);
  }

  // Bytes in the queue now, including the packet on the line. Times must not go back.
  std::uint64_t waiting_bytes(std::int64_t now_ns) {
    waiting_.advance(now_ns);
    return waiting_.bytes();
  }
  std::uint32_t waiting_packets(std::int64_t now_ns) {
    waiting_.advance(now_ns);
    return waiting_.packets();
  }
  // Bytes in the queue at the time of the last call that took a time.
  std::uint64_t last_waiting_bytes() const { return waiting_.bytes(); }

  // Call it shortly before a packet comes. The queue itself must be in the cache already.
  void prefetch() const { waiting_.prefetch(); }

 private:
  // State of a queue with a recorded line, trimming, RED or CoDel. A queue that only drops what
  // does not fit, before a line of fixed rate, has none.
  struct Special {
    Special(const QueueOptions& options, const RandomStream& random);

    QueueOptions options;
    std::optional<TraceLine> recorded;  // replaces the line of fixed rate
    std::optional<Codel> codel;
    RandomStream random;
  };

  Queue(const QueueOptions& options, const RandomStream& random);

  bool fits(std::uint32_t bytes, std::uint64_t limit) const {
    return waiting_.packets() < max_packets_ && waiting_.bytes() <= limit &&
           bytes <= limit - waiting_.bytes();
  }
  Passage sent(std::int64_t departure_ns, std::uint32_t bytes, QueueFate fate) {
    waiting_.push(departure_ns, bytes);
    return {fate, departure_ns, bytes};
  }
  Passage judge(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable);
  std::int64_t start_of(std::int64_t now_ns);
  bool hit_by_red();
  Passage trim(std::int64_t now_ns, std::uint32_t bytes);
  Passage admit(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable, bool mark);
  Passage send(std::int64_t now_ns, std::uint32_t bytes, QueueFate fate);

  Serializer line_;
  WaitingPackets waiting_;
  std::uint64_t max_bytes_;
  std::uint32_t max_packets_;
  std::unique_ptr<Special> special_;
};
static_assert(sizeof(Queue) == 128);

}  // namespace leeway::sim
