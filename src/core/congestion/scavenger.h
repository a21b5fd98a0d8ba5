// Controller that takes the capacity which others leave: LEDBAT++
// (draft-irtf-iccrg-ledbat-plus-plus) on one-way delay.
//
// The window grows until the queue is 60 ms long (the target), and shrinks when the queue is
// longer. So other flows that fill the queue displace this one. Once packets have overflowed, the
// target is a quarter of the longest queue seen, but at most 60 ms. Slow start ends at three
// quarters of the target. From time to time the window goes down to two packets for two round
// trips, to measure the path without our own queue. The time between two such slowdowns is fifteen
// times the length of the last one. Loss beyond the noise floor halves the window.
#pragma once

#include "congestion/controller.h"
#include "congestion/noise_floor.h"

namespace leeway::congestion {

class Scavenger final : public Controller {
 public:
  void on_sample(const Sample& sample) override;
  Pace pace() const override;
  double noise() const override { return floor_.value(); }

 private:
  enum class State : std::uint8_t { slow_start, steady, pause, recovery };
  static constexpr double kNothing = 1e18;

  static double gain(const Sample& sample);
  bool grows_fast() const { return state_ == State::slow_start || state_ == State::recovery; }
  void settle(const Sample& sample);
  void on_round(const Sample& sample);
  void follow_delay(const Sample& sample);

  State state_ = State::slow_start;
  double window_ = 10 * kPacketBytes;
  double threshold_ = kNothing;  // slow start ends at this window
  Duration rtt_{0};
  double round_queue_ns_ = kNothing;  // least in this round
  double queue_most_ns_ = 0;
  double target_ns_ = 60e6;
  Instant round_began_{0};
  Instant pause_began_{0};
  Instant pause_at_ = Instant::infinite_future();
  std::uint32_t phase_ = 0;
  double covered_ = 0;  // in this round
  double lost_ = 0;
  bool marked_ = false;
  NoiseFloor floor_;
};

}  // namespace leeway::congestion
