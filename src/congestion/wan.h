// For lines that others use and that lose packets by themselves: BBR's model of the path, with loss
// judged by what is more than the network's own.
//
// The model is a rate (the windowed maximum of what arrives) and a round trip (its minimum). It is
// probed as in BBRv3: startup, drain, then cruising with a probe up and down every 63 round trips
// or 2 s. What differs:
//
// 1. Loss counts when it exceeds a noise floor (noise_floor.h). Startup teaches the floor: in a
//    round after which delivery still grew, losses were not ours. Later *relief windows* do, four
//    round trips at half rate: what is lost in them is not ours either. They come regularly, and
//    at once when loss is first seen. A cut that they explain is taken back.
// 2. Pace = gain x delivery / (1 - floor), never / (1 - loss), which would push without end; and
//    delivery alone where the queue stands, that is, does not get empty within a round trip.
// 3. A ceiling: what CUBIC would send which meets the same congestion (cubic_ceiling.h). What a
//    probe loses by itself does not lower it.
#pragma once

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

 private:
  enum class State : std::uint8_t { startup, drain, cruise, up, down, relief };
  struct Tally {
    double covered = 0;
    double lost = 0;
  };

  void enter(State state);
  void on_round(const Sample& sample);
  void leave_state(const Sample& sample);
  void on_startup_round(const Sample& sample);
  void judge_loss(const Sample& sample);
  bool may_relieve(Instant now) const;
  void end_relief(const Sample& sample);
  void leave_startup(const Sample& sample);
  void cut(const Sample& sample);
  void update_pace();

  double rate() const { return rate_.value(); }
  double bdp_bytes() const { return rate() / 8e9 * static_cast<double>(rtt_min_.count()); }
  bool queue_stood() const;

  State state_ = State::startup;
  Instant round_began_{0};
  Duration rtt_{0};      // smoothed
  Duration rtt_min_{0};  // of all links, smoothed by use
  WindowedMax rate_;     // bits per second that arrive
  double round_rate_ = 0;
  double startup_rate_ = 0;
  double startup_window_ = 10 * kPacketBytes;  // grows by what arrives, as TCP's slow start
  int flat_rounds_ = 0;
  int queued_ = 0;          // samples in a row that found a queue
  double probed_rate_ = 0;  // before the last probe; 0: there was none
  int state_rounds_ = 0;
  bool round_used_ = false;  // this round, we limited what was sent
  Duration round_queue_{0};  // the least of this round
  WindowedMax queue_max_;    // nanoseconds
  Instant queue_window_began_{0};
  bool stood_ = false;  // the last round's queue
  Tally round_;
  Tally judged_;  // some rounds
  int judged_rounds_ = 0;
  Tally growing_;      // the round before, if startup grew in it
  Tally phase_tally_;  // since the state began
  Tally cycle_;        // since the last relief window
  int cycle_rounds_ = 0;
  Instant relieved_{0};
  Instant probed_{0};
  Instant cut_{0};
  Instant startup_left_{0};
  NoiseFloor floor_;
  CubicCeiling ceiling_;
  // Loss that a relief window is to explain, and the ceiling before it was cut for that.
  struct {
    double covered = 0;
    double lost = 0;
    CubicCeiling ceiling;
  } suspect_;
  Pace pace_{.bits_per_second = 10 * kPacketBytes * 8 / 1e-3,
             .in_flight_bytes = static_cast<std::uint64_t>(10 * kPacketBytes)};
};

}  // namespace leeway::congestion
