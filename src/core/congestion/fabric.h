// Controller for a private network with short round trips. Its window follows delay, like Swift's
// (SIGCOMM 2020).
//
// 1. **Below a target** of queueing, the window grows by an eighth of a packet each round trip. The
//    step doubles every four round trips without a cut, so a free link is soon filled. All senders
//    that share a link add alike.
// 2. **Above the target**, the window shrinks in proportion to the excess, but only once a round
//    trip, since packets sent before the cut do not show its effect. In that round trip the rate is
//    lower still, so that most of the queue drains. A sender that began while the queue stood took
//    the queue for the path's own delay. It now measures the true delay.
// 3. **The target** is longer for a smaller window: where many senders share a link, packets meet
//    by chance. It is at most half of the longest queue seen when packets overflowed.
// 4. **Marks** shrink the window by half of their share (RFC 8257). **Losses** halve it if they are
//    at least three, and more than 2 % of the packets.
//
// The window may be less than a packet; then only the pace enforces it. So many senders to one
// receiver fit into the buffer before that receiver.
#pragma once

#include "congestion/controller.h"

namespace leeway::congestion {

class Fabric final : public Controller {
 public:
  void on_sample(const Sample& sample) override;
  Pace pace() const override;
  bool spares_near() const override { return false; }
  Questions questions() const override { return {.least = kAskLeast, .by_share = true}; }

 private:
  static constexpr Duration kAskLeast = std::chrono::microseconds(50);
  // With a larger first window, packets would overflow where all ranks send to one receiver.
  static constexpr double kWindowFirst = 2 * kPacketBytes;
  static constexpr double kStepFirst = kPacketBytes / 8;
  static constexpr double kNoQueueNs = 1e18;

  // Sums over the latest round trips.
  struct Tally {
    double covered = 0;
    double lost = 0;
    double queue_most_ns = 0;
    int rounds = 0;
  };

  double target_ns() const;
  void grow(const Sample& sample);
  void shrink(Instant now, double keep);
  void on_round(const Sample& sample);
  bool excess();
  // Returns true if the reported datagram was sent after the window shrank.
  bool is_fresh(const Sample& sample) const { return sample.now - sample.rtt >= shrank_at_; }

  double window_ = kWindowFirst;
  double step_ = kStepFirst;  // bytes a round trip
  double drain_ = 1;          // factor on the rate, for the round trip in which a queue drains
  bool starting_ = true;
  int quiet_rounds_ = 0;
  Duration rtt_{0};      // smoothed over two samples: the pace is to follow the queue
  Duration rtt_min_{0};  // over all links, weighted by use
  Instant shrank_at_{0};
  Instant round_began_{0};
  double covered_ = 0;  // in this round
  double marked_ = 0;
  double marked_share_ = 0;  // smoothed over rounds
  Tally tally_;
  double overflow_ns_ = kNoQueueNs;  // longest queue when packets overflowed
  std::uint32_t phase_ = 0;
};

}  // namespace leeway::congestion
