#include "congestion/wan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leeway::congestion {
namespace {

constexpr double kStartupGain = 2.77;
constexpr double kInFlightGain = 2;
constexpr double kCarefulGain = 1.25;
constexpr double kGrowing = 1.25;  // a round of startup that grows less is flat
constexpr double kTeaches = 1.4;   // least growth of a round that teaches the noise floor
constexpr int kFlatRounds = 3;
constexpr int kFlatLossyRounds = 2;  // if loss exceeds the floor
constexpr double kFloodPackets = 20;
constexpr double kFloodSigmas = 2;
constexpr double kTellingPackets = 40;  // a round of fewer packets says nothing of growth
constexpr int kQueuedSamples = 6;       // in a row; others' bursts and hosts' delays are shorter
constexpr Duration kQueueMin = std::chrono::milliseconds(5);

constexpr double kKeep = 0.94;  // part of the share that the rate becomes after a sign
// Part of the rate that remains, at least, after one lossy round trip.
constexpr double kLossKeepMin = 0.85;
constexpr double kCarried = 0.9;  // part of our sending rate that arrives
// Part of the rate that remains, at least, after a sign with a queue of less than twice the target.
constexpr double kShortKeepMin = 0.25;
constexpr double kStillStands = 0.99;   // factor on the rate if a queue outlasts a first cut
constexpr double kDrainMin = 0.5;       // factor on the rate while a queue drains
constexpr int kQuietRounds = 2;         // rounds beyond the share, before the step doubles
constexpr double kBeyond = 1.02;        // times the share
constexpr double kStepMin = 1.0 / 256;  // fraction of the packets in flight
constexpr double kStepMax = 1.0 / 12;
constexpr int kFreeRounds = 16;  // rounds beyond the share; after that the path is far from full
constexpr double kFreeStepMax = 1.0 / 4;
constexpr double kFirstStep = 1.0 / 24;  // until the first sign
constexpr double kFarBelow = 0.7;        // part of the rate that the path has carried lately
constexpr double kPeak = 0.9;            // fraction of the longest queue: overflow is near
constexpr int kDoubtRounds = 64;
constexpr double kPeakKeep = 0.9;
constexpr double kNoisy = 0.003;
constexpr int kStandingRounds = 10;
constexpr double kArrivedMost = 2;
// Times the rate that arrives now: the path may have become slow.
constexpr double kBeforeMost = 1.25;
constexpr double kTargetNs = 15e6;  // divided by the square root of the packets in flight
constexpr double kTargetMinNs = 1e6;
constexpr double kTargetMost = 1.0 / 16;  // fraction of the round trip
// The target is at least this many standard deviations of the jitter. A usual delay is longer by
// about that than the least of thousands.
constexpr double kJitters = 6;
// After packets have overflowed, delays vary more likely with a queue that others share.
constexpr double kJittersOverflown = 4;
constexpr double kOverflowPart = 0.5;
constexpr double kOwnPackets = 1.5;       // our own batch of packets is a queue by itself
constexpr double kTrainsMost = 1.0 / 80;  // fraction of the round trip
constexpr int kJudgedRounds = 8;
constexpr double kLossMargin = 0.02;
constexpr double kPacketsMin = 4;
constexpr Duration kQueueWindow = std::chrono::seconds(3);

double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

}  // namespace

double Wan::packet_rate() const {
  return kPacketBytes * 8 / std::max(seconds(rtt_), 1e-6);
}

double Wan::packets() const {
  return std::max(rate_ / packet_rate(), kPacketsMin);
}

Duration Wan::target() const {
  const double most = static_cast<double>(rtt_min_.count()) * kTargetMost;
  double ns = std::max(std::min(kTargetNs / std::sqrt(packets()), most), kTargetMinNs);
  if (overflow_queue_ > 0) {
    const double trains_ns = std::min(kOwnPackets * kPacketBytes * 8e9 / std::max(rate_, 1.0),
                                      static_cast<double>(rtt_min_.count()) * kTrainsMost);
    ns = std::min(ns, std::max(kOverflowPart * overflow_queue_, trains_ns));
  }
  const double jitters = overflow_queue_ > 0 ? kJittersOverflown : kJitters;
  ns = std::max(ns, jitters * static_cast<double>(jitter_.count()));
  return Duration(static_cast<std::int64_t>(ns));
}

void Wan::enter(State state) {
  state_ = state;
  ++pace_.phase;
}

void Wan::on_sample(const Sample& sample) {
  rtt_ = rtt_.count() == 0 ? sample.rtt : rtt_ + (sample.rtt - rtt_) / 8;
  rtt_min_ = rtt_min_.count() == 0 ? sample.rtt_min : rtt_min_ + (sample.rtt_min - rtt_min_) / 8;
  if (sample.interval.count() > 0) {
    const double rate = 8e9 * static_cast<double>(sample.delivered_bytes) /
                        static_cast<double>(sample.interval.count());
    round_.rate = std::max(round_.rate, rate);
  }
  // Losses of startup's overshoot are reported after its end, and say nothing of later round trips.
  if ((sample.phase != 0 && sample.phase != kNoPhase) || sample.now - gave_way_ > 4 * rtt_) {
    startup_reported_ = true;
  }
  if (state_ == State::startup || startup_reported_) {
    round_.loss.covered += sample.covered;
    round_.loss.lost += sample.lost;
  }
  // Instead of marking a datagram, a queue without ECN would have dropped it: such a loss cannot be
  // explained by noise.
  round_.marked |= sample.marked > 0 && (state_ == State::startup || startup_reported_);
  round_.used |= !sample.limited;
  jitter_ = sample.jitter;
  round_.queue_least = std::min(round_.queue_least, sample.queueing);
  round_.queue_most = std::max(round_.queue_most, sample.queueing);
  queue_max_.add(static_cast<double>(sample.queueing.count()));
  if (sample.now - queue_window_began_ >= kQueueWindow) {
    queue_window_began_ = sample.now;
    queue_max_.next_window();
    carried_.next_window();
  }
  if (state_ == State::startup) {
    window_ += static_cast<double>(sample.newly_delivered_bytes);
    // Reports of few packets may show a higher rate than the packets in flight allow.
    const double most = window_ * 8 / std::max(seconds(rtt_min_), 1e-6);
    rate_ = std::min(std::max(rate_, round_.rate), most);
    queued_ = sample.queueing > std::max(kQueueMin, rtt_min_ / 8) ? queued_ + 1 : 0;
    if (queued_ >= kQueuedSamples) leave_startup(sample.now);
  }
  if (sample.now - sample.rtt >= round_began_) on_round(sample);
  update_pace();
}

void Wan::on_round(const Sample& sample) {
  ceiling_.on_round(sample.now, rtt_, round_.used, 1e9);
  switch (state_) {
    case State::startup:
      on_startup_round();
      if (flat_rounds_ >= kFlatRounds) leave_startup(sample.now);
      break;
    case State::yield:
      enter(State::seek);
      break;
    case State::seek:
      on_seek_round(sample.now);
      break;
    case State::compete:
      on_compete_round(sample.now);
      break;
  }
  round_ = {};
  round_began_ = sample.now;
}

void Wan::on_startup_round() {
  const bool lossy = excess();
  // A share above kMax is nobody's noise, and cannot be chance if there are more than a few
  // packets. The very first packets may have come before their peer was ready.
  const double most = NoiseFloor::kMax * round_.loss.covered;
  const double chance = round_.loss.covered < kTellingPackets ? kFloodSigmas * std::sqrt(most) : 0;
  const bool flooded = round_.marked || (lossy && round_.loss.covered >= kFloodPackets &&
                                         round_.loss.lost > most + chance);
  const bool seen = queue_was_seen();
  const bool again = std::exchange(flooded_, flooded);
  // A round that the application limited says nothing of growth, but its losses in a queue count.
  if ((flooded && (seen || again)) || (lossy && !round_.used && round_.queue_most > target()))
    flat_rounds_ = kFlatRounds;
  if (!round_.used) return;
  // This is a burst of losses, or a queue too short to be seen. If it was a queue, packets are lost
  // in the next round trip, too.
  if (flooded && !seen && !again) {
    gain_ = 1;
    growing_ = round_.loss;
    return;
  }
  // A queue begins, so the next round trip grows by less.
  const bool begins = round_.queue_most > 2 * target();
  gain_ = begins ? kCarefulGain : kStartupGain;
  const double grown = startup_rate_ > 0 ? rate_ / startup_rate_ : kTeaches;
  const bool queued = round_.queue_least > target();
  // The first of two growing rounds teaches: in the second, the path may have been full already.
  if (grown >= kTeaches && round_.queue_most < target() / 2)
    floor_.teach(growing_.covered, growing_.lost);
  growing_ = grown >= kTeaches ? round_.loss : Tally{};
  if (grown >= kGrowing) {
    startup_rate_ = rate_;
    if (flooded) return;
    flat_rounds_ = 0;
    if (!queued) return;
  }
  if (round_.loss.covered < kTellingPackets && !queued) return;
  flat_rounds_ += queued ? kFlatRounds : 1;
  if (lossy && (begins || flat_rounds_ >= kFlatLossyRounds)) flat_rounds_ = kFlatRounds;
}

void Wan::leave_startup(Instant now) {
  gave_way_ = now;
  share_ = rate_;
  drain_ = kDrainMin;
  // Startup may have ended too early, by a busy host's delays.
  step_ = kFirstStep * packets();
  enter(State::yield);
}

// Returns whether a queue marked datagrams, or loss exceeds the floor. A small flow's round trip
// has too few packets to tell chance from congestion. So up to kJudgedRounds count together.
bool Wan::excess() {
  judged_.covered += round_.loss.covered;
  judged_.lost += round_.loss.lost;
  const bool is = round_.marked || floor_.excess(judged_.covered, judged_.lost, kLossMargin) > 0;
  if (is) overflow_ = round_.marked ? std::nullopt : std::optional(judged_);
  if (++judged_rounds_ >= kJudgedRounds || is) {
    judged_ = {};
    judged_rounds_ = 0;
  }
  return is;
}

// Returns whether a queue marked datagrams, or was longer than the target in the last 3 to 6
// seconds.
bool Wan::queue_was_seen() const {
  return round_.marked || queue_max_.value() > static_cast<double>(target().count());
}

// A burst may have been taken for an overflow while the floor knew little of bursts. If the floor
// explains it now, the overflow's queue is forgotten.
void Wan::judge_overflow_again() {
  if (overflow_ && floor_.excess(overflow_->covered, overflow_->lost, kLossMargin) == 0)
    overflow_queue_ = 0;
}

// Call it when the rate is cut for a loss that neither a queue nor a mark explains.
void Wan::doubt_losses(Instant now) {
  if (before_losses_ == 0) {
    before_losses_ = rate_;
    doubted_ = {};
    doubt_until_ = now + kQueueWindow;
  }
  doubted_.covered += overflow_->covered;
  doubted_.lost += overflow_->lost;
}

// If the floor has since learnt enough to explain the doubted losses, the share is the rate before
// these losses, but not more than the path has carried.
void Wan::take_back_losses(Instant now) {
  if (before_losses_ == 0) return;
  if (now > doubt_until_) {
    before_losses_ = 0;
  } else if (floor_.excess(doubted_.covered, doubted_.lost, kLossMargin) == 0) {
    share_ = std::max(share_, std::min(before_losses_, carried_.value()));
    step_ = std::max(step_, kFirstStep * packets());
    before_losses_ = 0;
  }
}

void Wan::on_seek_round(Instant now) {
  // Datagrams sent before we gave way say nothing.
  if (now - rtt_ < gave_way_ + rtt_ / 4) return;
  judge_overflow_again();
  const bool lossy = excess();
  carried_.add(round_.rate);
  const bool stands = round_.queue_least > target();
  if (!stands) learn(lossy);
  take_back_losses(now);
  if (lossy) overflow_queue_ = queue_max_.value();
  lossy_rounds_ = lossy ? lossy_rounds_ + 1 : 0;
  if (stands) {
    if (standing_rounds_++ == 0) before_ = rate_;
    if (standing_rounds_ >= kStandingRounds) {
      standing_rounds_ = compete_rounds_ = short_rounds_ = 0;
      const double begin = round_.used ? std::min(before_, kBeforeMost * round_.rate) : before_;
      ceiling_.begin(now, begin / (1 - floor_.value()) / packet_rate());
      return enter(State::compete);
    }
  } else if (round_.queue_least < target() / 2) {
    standing_rounds_ = 0;
  }
  // A queue that stands while we have little to send is not ours.
  if (lossy || (stands && (round_.used || round_.rate > rate_ / 2))) return give_way(now, !stands);
  drain_ = 1;
  if (round_.used) grow();
}

void Wan::give_way(Instant now, bool by_loss) {
  if (by_loss && overflow_) {
    doubt_losses(now);
  } else {
    before_losses_ = 0;
  }
  double share = round_.used ? std::min(rate_, round_.rate) : rate_ * kKeep;
  // The path carries our whole sending rate, and an earlier queue drains: so our share is not
  // smaller.
  if (drain_ < 1 && round_.rate > kCarried * drain_ * rate_) share = kStillStands * rate_ / kKeep;
  if (by_loss && lossy_rounds_ < 2) share = std::max(share, kLossKeepMin * rate_);
  // Data that does not arrive stands in the queue. So a rate that is much less beside a short queue
  // is a busy host's.
  if (!by_loss && round_.queue_most < 2 * target()) share = std::max(share, kShortKeepMin * rate_);
  share_ = share;
  const double drain = static_cast<double>(round_.queue_least.count()) /
                       std::max(static_cast<double>(rtt_.count()), 1.0);
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
  // While the rate is above kArrivedMost times what arrives, it does not grow.
  if (rate_ > kArrivedMost * std::max(round_.rate, share_)) return;
  if (rate_ > kBeyond * share_ && ++quiet_rounds_ % kQuietRounds == 0) step_ *= 2;
  const double most = quiet_rounds_ < kFreeRounds ? kStepMax : kFreeStepMax;
  step_ = std::clamp(step_, std::max(1.0, kStepMin * packets()), std::max(1.0, most * packets()));
  rate_ += step_ * packet_rate();
}

// Teaches the floor by round trips below our share with a queue that was short, or at most half of
// one that overflowed: their loss is the network's. A round trip that lost more than the floor
// explains may be an overflow all the same. It teaches only if the path has carried much more
// lately. Without such rounds the floor would learn only a path's short bursts.
void Wan::learn(bool lossy) {
  const double target_ns = static_cast<double>(target().count());
  const double most = lossy ? target_ns / 2 : std::max(target_ns, kOverflowPart * overflow_queue_);
  const double below = lossy ? kFarBelow * carried_.value() : share_;
  if (rate_ < below && static_cast<double>(round_.queue_most.count()) < most && !round_.marked)
    floor_.teach(round_.loss.covered, round_.loss.lost);
}

void Wan::on_compete_round(Instant now) {
  rate_ = ceiling_.packets() * packet_rate() * (1 - floor_.value());
  // A flow that fills a queue makes it longer than the target. If the queue is always shorter, the
  // path's delay has grown.
  short_rounds_ = round_.queue_most < target() ? short_rounds_ + 1 : 0;
  if (round_.queue_least < target() / 2 || short_rounds_ >= kStandingRounds) {
    share_ = rate_;
    step_ = 1;
    quiet_rounds_ = 0;
    return enter(State::seek);
  }
  // A floor learnt beside others who lost packets, too, must not hold for ever.
  if (++compete_rounds_ % kDoubtRounds == 0) floor_.decay();
  if (now - rtt_ < gave_way_ + rtt_ / 4) return;
  judged_.covered += round_.loss.covered;
  judged_.lost += round_.loss.lost;
  const bool lossy = round_.marked || floor_.more(judged_.covered, judged_.lost);
  const bool peak = floor_.mean() > kNoisy &&
                    static_cast<double>(round_.queue_most.count()) > kPeak * queue_max_.value();
  if (!lossy && !peak) {
    if (++judged_rounds_ >= kJudgedRounds) judged_ = {}, judged_rounds_ = 0;
    return;
  }
  judged_ = {};
  judged_rounds_ = 0;
  gave_way_ = now;
  ceiling_.cut(now, ceiling_.packets(), lossy ? CubicCeiling::kBeta : kPeakKeep);
}

void Wan::update_pace() {
  if (rate_ <= 0) return;
  const double open = 1 - floor_.value();
  double bits = (state_ == State::startup ? gain_ : drain_) * rate_ / open;
  if (state_ == State::startup) bits = std::max(bits, 10 * packet_rate());
  const double share = std::max(rate_, share_);
  double window = kInFlightGain * share / open / 8 * seconds(rtt_min_);
  if (state_ == State::startup) window = std::max(window, window_);
  if (state_ == State::compete) window = std::max(window, 1.5 * ceiling_.packets() * kPacketBytes);
  pace_.bits_per_second = std::max(bits, kPacketsMin * packet_rate());
  pace_.in_flight_bytes = static_cast<std::uint64_t>(std::max(window, kPacketsMin * kPacketBytes));
}

}  // namespace leeway::congestion
