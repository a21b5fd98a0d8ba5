// Controller for paths that others use and that lose packets by themselves. It goes by delay where
// the queue can be seen, and by loss beyond the network's own where it cannot. Beside flows that
// fill queues it uses CUBIC's window.
//
// The model is `share_`: our throughput when the bottleneck is full. It is measured in every round
// trip that shows a *sign*: a queue that stands above the target all the round, or excess loss.
//
// 1. **After a sign** the rate is a little less than the share that was measured in it, and the
//    queue is drained first. From there the rate returns to the share at once, and beyond it by a
//    packet a round trip, then by two, four, eight: a path that has become free is filled in a few
//    round trips. All who share a path add alike and give way in proportion, so shares become
//    equal.
// 2. **The target** is less for a larger window (1 / sqrt(window), as Swift's). It is at most half
//    of the longest queue that was seen when packets overflowed, and at least what delays vary by
//    themselves (delay_jitter.h).
// 3. **Loss** counts when it exceeds a noise floor (noise_floor.h). Startup teaches it, and later
//    round trips in which we sent less than our share and the queue stayed short (learn()). If the
//    floor explains an overflow later, it was none, and the cut for it is taken back.
// 4. **Others who fill the queue.** If the queue never falls below the target though we gave way
//    for some round trips, we send what CUBIC would (cubic_ceiling.h) until the queue is empty
//    once.
#pragma once

#include <optional>

#include "congestion/controller.h"
#include "congestion/cubic_ceiling.h"
#include "congestion/noise_floor.h"
#include "congestion/windowed_max.h"

namespace leeway::congestion {

class Wan final : public Controller {
 public:
  void on_sample(const Sample& sample) override;
  Pace pace() const override { return pace_; }
  double noise() const override { return floor_.value(); }
  bool governs_links() const override { return true; }

 private:
  enum class State : std::uint8_t { startup, yield, seek, compete };
  struct Tally {
    double covered = 0;
    double lost = 0;
  };
  // Measurements of one round trip.
  struct Round {
    Tally loss;
    double rate = 0;  // the largest that was measured, bits per second
    Duration queue_least{std::chrono::hours(1)};
    Duration queue_most{0};
    bool used = false;    // the controller limited the sending rate
    bool marked = false;  // a queue marked some datagrams
  };

  void enter(State state);
  void on_round(const Sample& sample);
  void on_startup_round();
  void leave_startup(Instant now);
  void on_seek_round(Instant now);
  void on_compete_round(Instant now);
  void give_way(Instant now, bool by_loss);
  void grow();
  void learn(bool lossy);
  bool excess();
  bool queue_was_seen() const;
  void judge_overflow_again();
  void doubt_losses(Instant now);
  void take_back_losses(Instant now);
  void update_pace();

  Duration target() const;
  double packets() const;  // in flight at the present rate
  double packet_rate() const;

  State state_ = State::startup;
  Pace pace_{.bits_per_second = 10 * kPacketBytes * 8 / 1e-3,
             .in_flight_bytes = static_cast<std::uint64_t>(10 * kPacketBytes)};
  Duration rtt_{0};      // smoothed
  Duration rtt_min_{0};  // over all links, weighted by use
  double rate_ = 0;      // bits per second that should arrive
  double share_ = 0;     // bits per second that arrived when the path was last full
  double drain_ = 1;     // factor on the rate, for the round trip in which a queue drains
  double step_ = 1;      // packets a round trip
  int quiet_rounds_ = 0;
  int standing_rounds_ = 0;  // rounds in a row in which the queue did not fall below the target
  double before_ = 0;        // the rate when the queue began to stand
  int lossy_rounds_ = 0;
  int compete_rounds_ = 0;
  int short_rounds_ = 0;  // rounds of competing beside a queue shorter than the target
  Duration jitter_{0};    // in the latest sample
  Instant gave_way_{0};
  Instant round_began_{0};
  Round round_;
  Tally judged_;  // losses in the latest round trips
  int judged_rounds_ = 0;
  // Longest queue of the last 3 to 6 seconds, ns.
  WindowedMax queue_max_;
  Instant queue_window_began_{0};
  double overflow_queue_ = 0;  // longest queue when packets overflowed, ns; 0 if unknown
  WindowedMax carried_;        // bits per second that arrived
  // The losses that showed the overflow; unset if a queue's marks did.
  std::optional<Tally> overflow_;
  NoiseFloor floor_;
  // Losses for which we gave way without any other sign. The floor may explain them later.
  Tally doubted_;
  double before_losses_ = 0;  // the rate before the first of these losses, or 0
  Instant doubt_until_{0};
  CubicCeiling ceiling_;
  // State of startup.
  double window_ = 10 * kPacketBytes;  // grows by what arrives, as TCP's slow start
  double startup_rate_ = 0;
  int flat_rounds_ = 0;
  bool flooded_ = false;  // the previous round lost too much for noise
  int queued_ = 0;        // samples in a row that found a queue
  Tally growing_;         // losses of the previous round, if startup grew in it
  double gain_ = 2.77;
  bool startup_reported_ = false;
};

}  // namespace leeway::congestion
