#include "tcp/bbr.h"

#include "engine/fixed_point.h"

namespace leeway::sim {

namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;
constexpr int kFullRounds = 3;

}  // namespace

void Bbr::on_ack(const Sample& sample) {
  delivered_ = sample.delivered;
  update_rate(sample);
  if (state_ == State::probe_rate) advance_cycle(sample);
  check_full(sample);
  update_rtt(sample);
  update_window(sample);
}

void Bbr::update_rate(const Sample& sample) {
  round_start_ = sample.prior_delivered >= round_end_;
  if (round_start_) {
    round_end_ = sample.delivered;
    ++round_;
    rates_[round_ % kRateRounds] = 0;
  }
  if (sample.interval_ns <= 0) return;
  const auto rate =
      static_cast<std::uint64_t>(Wide{sample.delivered - sample.prior_delivered} * segment_bytes_ *
                                 kNanoseconds / static_cast<std::uint64_t>(sample.interval_ns));
  std::uint64_t& best = rates_[round_ % kRateRounds];
  if (!sample.limited || rate > this->rate()) best = std::max(best, rate);
}

// Moves to the next phase of the gain cycle after a round trip. A phase's target is its gain times
// the path's estimated bandwidth-delay product. A phase with a gain above 1 also waits until its
// target is in flight. A phase with a gain below 1 ends early once at most the target is in flight.
void Bbr::advance_cycle(const Sample& sample) {
  const bool over = sample.now_ns - cycle_at_ns_ > rtt_ns_;
  bool next = over;
  if (kCycle[cycle_] > kUnit) next = over && sample.flying >= target(kCycle[cycle_]);
  if (kCycle[cycle_] < kUnit) next = over || sample.flying <= target(kUnit);
  if (!next) return;
  cycle_ = (cycle_ + 1) % kCycle.size();
  cycle_at_ns_ = sample.now_ns;
}

void Bbr::check_full(const Sample& sample) {
  if (!full_ && round_start_ && !sample.limited) {
    if (rate() >= full_rate_ / 4 * 5) {
      full_rate_ = rate();
      full_rounds_ = 0;
    } else {
      full_ = ++full_rounds_ >= kFullRounds;
    }
  }
  if (state_ == State::startup && full_) state_ = State::drain;
  if (state_ == State::drain && sample.flying <= target(kUnit)) {
    state_ = State::probe_rate;
    // Linux starts at a random phase other than the second. A fixed one will do here, because flows
    // begin at different times.
    cycle_ = 2;
    cycle_at_ns_ = sample.now_ns;
  }
}

void Bbr::update_rtt(const Sample& sample) {
  const bool expired = rtt_ns_ >= 0 && sample.now_ns > rtt_at_ns_ + kRttWindowNs;
  if (sample.rtt_ns > 0 && (rtt_ns_ < 0 || sample.rtt_ns <= rtt_ns_ || expired)) {
    rtt_ns_ = sample.rtt_ns;
    rtt_at_ns_ = sample.now_ns;
  }
  if (expired && state_ != State::probe_rtt) {
    state_ = State::probe_rtt;
    probe_rtt_until_ns_ = -1;
  }
  if (state_ != State::probe_rtt) return;
  if (probe_rtt_until_ns_ < 0) {
    if (sample.flying <= kWindowMin) {
      probe_rtt_until_ns_ = sample.now_ns + std::max(kProbeRttNs, rtt_ns_);
    }
  } else if (sample.now_ns > probe_rtt_until_ns_) {
    rtt_at_ns_ = sample.now_ns;
    state_ = full_ ? State::probe_rate : State::startup;
    cycle_ = 2;
    cycle_at_ns_ = sample.now_ns;
  }
}

std::uint64_t Bbr::target(std::uint64_t gain) const {
  if (rtt_ns_ < 0) return initial_window_;
  const Wide bytes = Wide{rate()} * static_cast<std::uint64_t>(rtt_ns_) / kNanoseconds;
  return static_cast<std::uint64_t>(bytes * gain / kUnit) / segment_bytes_ + 1;
}

void Bbr::update_window(const Sample& sample) {
  if (conserving_) {
    if (sample.prior_delivered >= conserve_until_) {
      conserving_ = false;
    } else {
      window_ = std::max<std::uint64_t>(window_, sample.flying + sample.arrived);
      return;
    }
  }
  const std::uint64_t gain = full_ ? kWindowGain : kHighGain;
  const std::uint64_t most = target(gain) + 3;  // for delayed acknowledgements of two segments
  if (full_) {
    window_ = std::min(window_ + sample.arrived, most);
  } else if (window_ < most || sample.delivered < initial_window_) {
    window_ += sample.arrived;
  }
  window_ = std::max<std::uint64_t>(window_, kWindowMin);
}

void Bbr::on_recovery(std::uint32_t flying) {
  conserving_ = true;
  conserve_until_ = delivered_ + flying;
  window_ = std::max<std::uint64_t>(flying, kWindowMin);
}

void Bbr::on_recovery_end() {
  conserving_ = false;
  window_ = std::max(window_, target(kWindowGain));
}

void Bbr::on_timeout() {
  conserving_ = false;
  window_ = kWindowMin;
}

std::uint32_t Bbr::window() const {
  const std::uint64_t window =
      state_ == State::probe_rtt ? std::min<std::uint64_t>(window_, kWindowMin) : window_;
  return static_cast<std::uint32_t>(window);
}

std::uint64_t Bbr::pacing_gain() const {
  switch (state_) {
    case State::startup:
      return kHighGain;
    case State::drain:
      return kDrainGain;
    case State::probe_rate:
      return kCycle[cycle_];
    case State::probe_rtt:
      return kUnit;
  }
  return kUnit;
}

std::int64_t Bbr::gap_ns(std::uint32_t bytes) const {
  // While no rate is known, the pace is the initial window per millisecond.
  constexpr std::uint64_t kFirstPerSecond = 1000;
  const std::uint64_t known =
      rate() > 0 ? rate() : initial_window_ * segment_bytes_ * kFirstPerSecond;
  // Like Linux, paces one percent below the rate, so that no queue builds up.
  const Wide per_second = Wide{known} * pacing_gain() / kUnit * 99 / 100;
  return static_cast<std::int64_t>(Wide{bytes} * kNanoseconds / std::max<Wide>(per_second, 1));
}

}  // namespace leeway::sim
