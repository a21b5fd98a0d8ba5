// CoDel's control law, RFC 8289: when to drop from a queue whose packets have waited longer than
// `target` for at least `interval`.
//
// Asked once per packet in the order of dequeueing. The RFC looks into the queue after it dropped a
// packet and goes on with the next; here the next one is simply the next call, at the same time. A
// queue found empty needs no call, since the next packet then has waited for nothing. One
// deviation: the RFC spares a queue of less than one packet. Later packets are not known here, so a
// wait of less than the time of one full packet is spared instead (section 4.4 of the RFC asks for
// a target of at least that on slow links).
#pragma once

#include <cstdint>

namespace leeway::sim {

class Codel {
 public:
  // `packet_time_ns` is the time of one full packet on the line. interval_ns <= kIntervalMaxNs.
  Codel(std::int64_t target_ns, std::int64_t interval_ns, std::int64_t packet_time_ns);

  // Returns true if the packet that is dequeued now, after it waited for `sojourn_ns`, should be
  // dropped. With `mark` it should be marked instead, and is sent.
  bool hit(std::int64_t now_ns, std::int64_t sojourn_ns, bool mark);

  static constexpr std::int64_t kIntervalMaxNs = 4'000'000'000;  // its square fits 64 bits

 private:
  bool ok_to_drop(std::int64_t now_ns, std::int64_t sojourn_ns);
  void start_dropping(std::int64_t now_ns);
  std::int64_t control_law(std::int64_t from_ns) const;

  std::int64_t target_ns_;
  std::int64_t interval_ns_;
  // The RFC's variables. first_above_ns_ has a meaning only while above_ is true.
  bool above_ = false;
  std::int64_t first_above_ns_ = 0;
  bool dropping_ = false;
  std::int64_t drop_next_ns_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t last_count_ = 0;
  // The last packet was dropped while dropping_, so the next one moves drop_next_ns_ on.
  bool dropped_ = false;
};

}  // namespace leeway::sim
