// The receiving half of a TCP connection: puts segments in order and acknowledges them.
//
// It acknowledges every second segment. Some segments are acknowledged at once: those that are out
// of order, fill a hole, came twice or are among the first (Linux's quick acknowledgements). Any
// other segment waits for a second one or for a timer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "tcp/sliding_ring.h"
#include "tcp/tcp_ack.h"
#include "tcp/tcp_options.h"

namespace leeway::sim {

class TcpReceiver {
 public:
  explicit TcpReceiver(const TcpOptions& options);

  struct Arrival {
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;
    bool marked = false;   // by a queue on its way
    bool reduced = false;  // the sender answered the echo
  };
  // Result of on_segment(): the number of bytes that are now in order and were not before. `news`
  // is true if the segment had not arrived before.
  struct Taken {
    std::uint64_t bytes = 0;
    bool news = false;
  };
  Taken on_segment(Instant now, const Arrival& arrival);

  // Returns true if an acknowledgement is due. Then call take_ack() and send it.
  bool ack_due(Instant now) const { return ack_at_ns_ <= now.ns; }
  TcpAck take_ack();
  Instant next_wake() const { return {ack_at_ns_}; }

  std::uint64_t next() const { return next_; }

 private:
  static constexpr std::int64_t kNeverNs = Instant::infinite_future().ns;

  std::uint64_t take_in_order();
  void insert(std::uint64_t number);
  void remember(std::uint64_t number);
  void schedule_ack(Instant now, bool at_once);
  SackBlock block_of(std::uint64_t number) const;

  TcpOptions options_;
  SlidingRing<std::uint32_t> bytes_;     // bytes of segments beyond next_ that are there
  std::uint64_t next_ = 0;               // first missing one
  std::vector<SackBlock> beyond_;        // blocks that arrived after it, rising
  std::array<std::uint64_t, 3> recent_;  // a segment of each block that changed last, newest first
  std::uint32_t waiting_ = 0;            // segments not acknowledged yet
  std::uint32_t quick_left_;
  std::int64_t ack_at_ns_ = kNeverNs;
  bool duplicate_ = false;
  bool echo_ = false;
};

}  // namespace leeway::sim
