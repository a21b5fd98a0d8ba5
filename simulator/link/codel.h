// CoDel's control law (RFC 8289). It decides when to drop from a queue whose packets have waited
// longer than `target` for at least `interval`.
//
// Call hit() once per packet, in the order of dequeueing. After a drop the RFC dequeues the next
// packet at once; here the next call, at the same time, is for that packet. An empty queue needs no
// call, because the packet that comes next has not waited. One deviation: the RFC does not drop
// from a queue of less than one packet. This class does not know the queue behind a packet. So it
// does not drop a packet that waited less than the line takes for a full packet (RFC section 4.4
// asks for such a target on slow links).
#pragma once

#include <cstdint>

namespace leeway::sim {

class Codel {
 public:
  // `packet_time_ns` is the time of one full packet on the line. interval_ns <= kIntervalMaxNs.
  Codel(std::int64_t target_ns, std::int64_t interval_ns, std::int64_t packet_time_ns);

  // Returns true if the packet that is dequeued now should be dropped, or with `mark` marked and
  // sent. The packet has waited for `sojourn_ns`.
  bool hit(std::int64_t now_ns, std::int64_t sojourn_ns, bool mark);

  static constexpr std::int64_t kIntervalMaxNs = 4'000'000'000;  // its square fits 64 bits

 private:
  bool ok_to_drop(std::int64_t now_ns, std::int64_t sojourn_ns);
  void start_dropping(std::int64_t now_ns);
  std::int64_t control_law(std::int64_t from_ns) const;

  std::int64_t target_ns_;
  std::int64_t interval_ns_;
  // The RFC's variables. first_above_ns_ is valid only while above_ is true.
  bool above_ = false;
  std::int64_t first_above_ns_ = 0;
  bool dropping_ = false;
  std::int64_t drop_next_ns_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t last_count_ = 0;
  // If true, the last call dropped a packet while dropping_, so the next call advances
  // drop_next_ns_.
  bool dropped_ = false;
};

}  // namespace leeway::sim
