#include "congestion/wan.h"

#include <algorithm>
#include <optional>

namespace leeway::congestion {
namespace {

constexpr double kInFlightGain = 2;

constexpr double kKeep = 0.94;  // part of the share that the rate becomes after a sign
// Least factor on the rate after one lossy round trip.
constexpr double kLossKeepMin = 0.85;
constexpr double kCarried = 0.9;  // part of our sending rate that arrives
// Least factor on the rate after a queue that was shorter than twice the target.
constexpr double kShortKeepMin = 0.25;
constexpr double kStillStands = 0.99;   // factor on the rate if a queue outlasts a first cut
constexpr double kDrainMin = 0.5;       // factor on the rate while a queue drains
constexpr int kQuietRounds = 2;         // rounds beyond the share, before the step doubles
constexpr double kBeyond = 1.02;        // times the share
constexpr double kStepMin = 1.0 / 256;  // fraction of the packets in flight
constexpr double kStepMax = 1.0 / 12;
constexpr int kFreeRounds = 16;  // rounds beyond the share; after that the path is far from full
constexpr double kFreeStepMax = 1.0 / 4;
constexpr double kFirstStep = 1.0 / 24;  // after startup, until the first sign
constexpr double kFarBelow = 0.7;        // part of the rate that the path has carried lately
constexpr double kPeak = 0.9;            // fraction of the longest queue: overflow is near
constexpr int kDoubtRounds = 64;
constexpr double kPeakKeep = 0.9;
constexpr double kNoisy = 0.003;
constexpr int kStandingRounds = 10;
constexpr double kArrivedMost = 2;
// CUBIC's window begins at no more than what sends this many times the rate that arrives now, since
// the path may have become slow.
constexpr double kBeforeMost = 1.25;

}  // namespace

void Wan::enter(State state) {
  state_ = state;
  ++pace_.phase;
}

void Wan::on_sample(const Sample& sample) {
  path_.on_sample(sample);
  // Losses of the last datagrams of startup are reported after its end. They say nothing about
  // later round trips.
  if ((sample.phase != 0 && sample.phase != kNoPhase) || sample.now - gave_way_ > 4 * path_.rtt()) {
    startup_reported_ = true;
  }
  round_.add(sample, state_ == State::startup || startup_reported_);
  if (state_ == State::startup) {
    startup_.on_sample(sample, round_, path_);
    rate_ = startup_.rate();
    if (startup_.over()) leave_startup(sample.now);
  }
  if (sample.now - sample.rtt >= round_began_) on_round(sample.now);
  update_pace();
}

void Wan::on_round(Instant now) {
  switch (state_) {
    case State::startup:
      startup_.on_round(round_, path_, losses_);
      if (startup_.over()) leave_startup(now);
      break;
    case State::yield:
      enter(State::seek);
      break;
    case State::seek:
      on_seek_round(now);
      break;
    case State::compete:
      on_compete_round(now);
      break;
  }
  round_ = {};
  round_began_ = now;
}

void Wan::leave_startup(Instant now) {
  gave_way_ = now;
  share_ = rate_;
  drain_ = kDrainMin;
  // The first steps are long, because a busy host's delays may have ended startup too early.
  step_ = kFirstStep * packets();
  enter(State::yield);
}

// Raises the share if the noise floor now explains the losses for which the rate was cut. The share
// then becomes the rate before these cuts, but no more than the path has carried.
void Wan::take_back_cuts(Instant now) {
  const std::optional<double> before = losses_.take_back(now);
  if (!before) return;
  share_ = std::max(share_, std::min(*before, path_.carried()));
  step_ = std::max(step_, kFirstStep * packets());
}

void Wan::on_seek_round(Instant now) {
  if (!shows_new_rate(now)) return;
  if (losses_.overflow_was_noise()) path_.forget_overflow();
  const bool lossy = losses_.overflowed(round_);
  path_.on_carried(round_.rate);
  const bool stands = round_.queue_least > target();
  if (!stands) learn(lossy);
  take_back_cuts(now);
  if (lossy) path_.on_overflow();
  lossy_rounds_ = lossy ? lossy_rounds_ + 1 : 0;
  if (stands) {
    if (standing_rounds_++ == 0) before_ = rate_;
    if (standing_rounds_ >= kStandingRounds) {
      standing_rounds_ = compete_rounds_ = short_rounds_ = 0;
      const double begin = round_.used ? std::min(before_, kBeforeMost * round_.rate) : before_;
      ceiling_.begin(now, begin / (1 - noise()) / path_.packet_rate());
      return enter(State::compete);
    }
  } else if (round_.queue_least < target() / 2) {
    standing_rounds_ = 0;
  }
  // A queue that stands while we send little is not ours, so we do not give way to it.
  if (lossy || (stands && (round_.used || round_.rate > rate_ / 2))) return give_way(now, !stands);
  drain_ = 1;
  if (round_.used) grow();
}

void Wan::give_way(Instant now, bool by_loss) {
  losses_.on_cut(now, rate_, by_loss);
  double share = round_.used ? std::min(rate_, round_.rate) : rate_ * kKeep;
  // If the path carried all that we sent at the lowered rate while the last queue drained, our
  // share is as large as before, although the queue still stands.
  if (drain_ < 1 && round_.rate > kCarried * drain_ * rate_) share = kStillStands * rate_ / kKeep;
  if (by_loss && lossy_rounds_ < 2) share = std::max(share, kLossKeepMin * rate_);
  // The share is what arrived, since more would stand in the queue. But if the queue is short and
  // much less than our rate arrived, a busy host is the reason, not the path.
  if (!by_loss && round_.queue_most < 2 * target()) share = std::max(share, kShortKeepMin * rate_);
  share_ = share;
  const double drain = static_cast<double>(round_.queue_least.count()) /
                       std::max(static_cast<double>(path_.rtt().count()), 1.0);
  rate_ = kKeep * share_;
  drain_ = std::max(1 - drain, kDrainMin);
  step_ = 1;
  quiet_rounds_ = 0;
  gave_way_ = now;
}

void Wan::grow() {
  if (rate_ < kKeep * share_) {
    rate_ = kKeep * share_;
    return;
  }
  if (rate_ > kArrivedMost * std::max(round_.rate, share_)) return;
  if (rate_ > kBeyond * share_ && ++quiet_rounds_ % kQuietRounds == 0) step_ *= 2;
  const double most = quiet_rounds_ < kFreeRounds ? kStepMax : kFreeStepMax;
  step_ = std::clamp(step_, std::max(1.0, kStepMin * packets()), std::max(1.0, most * packets()));
  rate_ += step_ * path_.packet_rate();
}

// Teaches the noise floor by round trips whose loss is the network's: we sent less than our share,
// and the queue was short or at most half of one that overflowed. A round trip that lost more than
// the floor explains (`lossy`) may be an overflow. It teaches only if the path has carried much
// more lately and the queue was below half of the target. If it never taught, the floor would miss
// long bursts.
void Wan::learn(bool lossy) {
  const double target_ns = static_cast<double>(target().count());
  const double most = lossy ? target_ns / 2 : std::max(target_ns, path_.half_overflow());
  const double below = lossy ? kFarBelow * path_.carried() : share_;
  if (rate_ < below && static_cast<double>(round_.queue_most.count()) < most && !round_.marked)
    losses_.teach(round_.loss);
}

void Wan::on_compete_round(Instant now) {
  ceiling_.on_round(now, path_.rtt(), round_.used);
  rate_ = ceiling_.packets() * path_.packet_rate() * (1 - noise());
  // A flow that fills the queue makes the queue longer than the target. If the queue is always
  // shorter, there is no such flow, and the path's delay has grown.
  short_rounds_ = round_.queue_most < target() ? short_rounds_ + 1 : 0;
  if (round_.queue_least < target() / 2 || short_rounds_ >= kStandingRounds) {
    share_ = rate_;
    step_ = 1;
    quiet_rounds_ = 0;
    return enter(State::seek);
  }
  // The noise floor may have been learnt from a queue that other flows filled. So it decays as long
  // as nothing confirms it.
  if (++compete_rounds_ % kDoubtRounds == 0) losses_.decay();
  if (!shows_new_rate(now)) return;
  const bool lossy = losses_.lossy_beside_others(round_);
  const bool peak = losses_.floor().mean() > kNoisy &&
                    static_cast<double>(round_.queue_most.count()) > kPeak * path_.longest_queue();
  if (!lossy && !peak) return;
  losses_.judge_anew();
  gave_way_ = now;
  ceiling_.cut(now, ceiling_.packets(), lossy ? CubicCeiling::kBeta : kPeakKeep);
}

void Wan::update_pace() {
  if (rate_ <= 0) return;
  const bool starting = state_ == State::startup;
  const double open = 1 - noise();
  double bits = (starting ? startup_.gain() : drain_) * rate_ / open;
  if (starting) bits = std::max(bits, 10 * path_.packet_rate());
  const double share = std::max(rate_, share_);
  double window = kInFlightGain * share / open / 8 * to_seconds(path_.rtt_min());
  if (starting) window = std::max(window, startup_.window_bytes());
  if (state_ == State::compete) window = std::max(window, 1.5 * ceiling_.packets() * kPacketBytes);
  constexpr double kLeast = WanPath::kPacketsMin;
  pace_.bits_per_second = std::max(bits, kLeast * path_.packet_rate());
  pace_.in_flight_bytes = static_cast<std::uint64_t>(std::max(window, kLeast * kPacketBytes));
}

}  // namespace leeway::congestion
