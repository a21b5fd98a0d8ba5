// Controller for paths that others use and that lose packets by themselves. It follows delay where
// the queue can be seen, and loss beyond the network's own where not. Beside flows that fill queues
// it uses CUBIC's window.
//
// The model is `share_`: our throughput when the bottleneck is full. It is measured in every round
// trip that shows a *sign* of congestion: a queue above the target for the whole round trip, a
// mark, or excess loss.
//
// 1. **After a sign** the queue is drained first, and the rate is a little less than the share that
//    the sign showed. The rate then returns to the share at once, and goes beyond it by a packet a
//    round trip, then by two, four, eight: a path that has become free is filled in a few round
//    trips. All who share a path add alike and give way in proportion, so shares become equal.
// 2. **The target** is less for a larger window (in proportion to 1 / sqrt(window), as in Swift).
//    It is at most half of the longest queue that was seen when packets overflowed, and at least
//    what delays vary by themselves (delay_jitter.h).
// 3. **Loss** counts when it exceeds a noise floor (noise_floor.h). The floor is learnt in startup,
//    and later in round trips in which we sent less than our share and the queue stayed short
//    (learn()). If the floor later explains the losses that were taken for an overflow, the cut for
//    them is taken back.
// 4. **Other flows that fill the queue.** If the queue stays above the target although we gave way
//    for some round trips, we send what CUBIC would (cubic_ceiling.h). That ends when the queue was
//    below half of the target once, or never above the target for ten round trips.
//
// Its parts know the path and its target (WanPath), what losses mean (WanLosses), and how to begin
// (WanStartup). This class decides on the rate after startup.
#pragma once

#include "congestion/controller.h"
#include "congestion/cubic_ceiling.h"
#include "congestion/wan_losses.h"
#include "congestion/wan_path.h"
#include "congestion/wan_round.h"
#include "congestion/wan_startup.h"

namespace leeway::congestion {

class Wan final : public Controller {
 public:
  void on_sample(const Sample& sample) override;
  Pace pace() const override { return pace_; }
  double noise() const override { return losses_.floor().value(); }
  bool governs_links() const override { return true; }

 private:
  enum class State : std::uint8_t { startup, yield, seek, compete };

  void enter(State state);
  void on_round(Instant now);
  void leave_startup(Instant now);
  void on_seek_round(Instant now);
  void on_compete_round(Instant now);
  void give_way(Instant now, bool by_loss);
  void grow();
  void learn(bool lossy);
  void take_back_cuts(Instant now);
  void update_pace();
  // Returns true if this round trip's reports are about datagrams that were sent after the latest
  // cut of the rate.
  bool shows_new_rate(Instant now) const {
    return now - path_.rtt() >= gave_way_ + path_.rtt() / 4;
  }
  Duration target() const { return path_.target(rate_); }
  double packets() const { return path_.packets(rate_); }

  State state_ = State::startup;
  Pace pace_{.bits_per_second = 10 * kPacketBytes * 8 / 1e-3,
             .in_flight_bytes = static_cast<std::uint64_t>(10 * kPacketBytes)};
  WanPath path_;
  WanLosses losses_;
  WanStartup startup_;
  CubicCeiling ceiling_;
  WanRound round_;
  Instant round_began_{0};
  Instant gave_way_{0};
  bool startup_reported_ = false;  // losses of startup are all reported
  double rate_ = 0;                // bits per second that should arrive
  double share_ = 0;               // bits per second that arrived when the path was last full
  double drain_ = 1;               // factor on the rate, for the round trip in which a queue drains
  double step_ = 1;                // packets a round trip
  int quiet_rounds_ = 0;
  int lossy_rounds_ = 0;
  int standing_rounds_ = 0;  // rounds in a row in which the queue did not fall below the target
  double before_ = 0;        // the rate when the queue began to stand
  int compete_rounds_ = 0;
  int short_rounds_ = 0;  // rounds of competing beside a queue shorter than the target
};

}  // namespace leeway::congestion
