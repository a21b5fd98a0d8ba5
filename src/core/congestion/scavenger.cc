#include "congestion/scavenger.h"

#include <algorithm>
#include <cmath>

namespace leeway::congestion {
namespace {

constexpr double kTargetMostNs = 60e6;
// Target after an overflow, as a fraction of the longest queue. It is small, so that other flows
// that fill a short queue are noticed before the queue overflows.
constexpr double kTargetPart = 0.25;
constexpr double kTargetLeastNs = 0.5e6;
constexpr double kSlowStartEnd = 0.75;  // fraction of the target
constexpr double kGainsMax = 16;
constexpr double kDecrease = 1;  // LEDBAT++'s constant: how hard delay above the target counts
constexpr double kWindowMin = 2 * kPacketBytes;
constexpr double kLossMargin = 0.01;
constexpr int kPauseRounds = 2;
// Time between slowdowns, as a multiple of the last slowdown's length. The draft has 9, with which
// slowdowns would take 10 % of the time.
constexpr int kBetweenPauses = 15;

}  // namespace

double Scavenger::gain(const Sample& sample) {
  const double base = std::max(static_cast<double>(sample.rtt_min.count()), 1e6);
  return 1 / std::min(kGainsMax, std::ceil(2 * kTargetMostNs / base));
}

// Ends slow start or the recovery from a slowdown, and sets when the next slowdown is due.
void Scavenger::settle(const Sample& sample) {
  threshold_ = window_;
  pause_at_ =
      sample.now +
      (state_ == State::slow_start ? 2 * rtt_ : kBetweenPauses * (sample.now - pause_began_));
  state_ = State::steady;
}

void Scavenger::on_sample(const Sample& sample) {
  rtt_ = rtt_.count() == 0 ? sample.rtt : rtt_ + (sample.rtt - rtt_) / 8;
  covered_ += sample.covered;
  lost_ += sample.lost;
  marked_ |= sample.marked > 0;
  const auto queue = static_cast<double>(sample.queueing.count());
  round_queue_ns_ = std::min(round_queue_ns_, queue);
  queue_most_ns_ = std::max(queue_most_ns_, queue);
  if (grows_fast()) {
    if (!sample.limited) {
      window_ += gain(sample) * static_cast<double>(sample.newly_delivered_bytes);
    }
    if (queue > kSlowStartEnd * target_ns_ || window_ >= threshold_) settle(sample);
  }
  if (sample.now - sample.rtt >= round_began_) on_round(sample);
}

void Scavenger::on_round(const Sample& sample) {
  if (state_ == State::slow_start && round_queue_ns_ < target_ns_ / 16) {
    floor_.teach(covered_, lost_);
  }
  const bool excess = marked_ || floor_.excess(covered_, lost_, kLossMargin) > 0;
  if (state_ != State::pause && excess) {
    window_ = std::max(window_ / 2, kWindowMin);
    target_ns_ = std::clamp(kTargetPart * queue_most_ns_, kTargetLeastNs, kTargetMostNs);
    if (grows_fast()) settle(sample);
  } else if (state_ == State::steady) {
    follow_delay(sample);
  }
  if (state_ == State::steady && sample.now >= pause_at_) {
    state_ = State::pause;
    threshold_ = window_;
    window_ = kWindowMin;
    pause_began_ = sample.now;
    ++phase_;
  } else if (state_ == State::pause && sample.now >= pause_began_ + kPauseRounds * sample.rtt) {
    state_ = State::recovery;
    ++phase_;
  }
  round_began_ = sample.now;
  round_queue_ns_ = kNothing;
  covered_ = lost_ = 0;
  marked_ = false;
}

void Scavenger::follow_delay(const Sample& sample) {
  const double above = round_queue_ns_ / target_ns_ - 1;
  const double step = gain(sample) * kPacketBytes;
  if (above > 0) {
    window_ += std::max(step - kDecrease * window_ * above, -window_ / 2);
  } else if (!sample.limited) {
    window_ += step;
  }
  window_ = std::max(window_, kWindowMin);
}

Pace Scavenger::pace() const {
  const double seconds = rtt_.count() == 0 ? 0.01 : to_seconds(rtt_);
  return {.bits_per_second = 1.25 * window_ * 8 / seconds,
          .in_flight_bytes = static_cast<std::uint64_t>(window_),
          .phase = phase_};
}

}  // namespace leeway::congestion
