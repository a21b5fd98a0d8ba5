#include "congestion/wan.h"

#include <algorithm>

namespace leeway::congestion {
namespace {

// BBRv3's gains (draft-ietf-ccwg-bbr), indexed by State. Cruising a little below the rate lets a
// queue go that stands for nothing: the rate is a maximum.
constexpr double kGain[] = {2.77, 0.5, 0.98, 1.25, 0.9, 0.5};
constexpr double kInFlightGain = 2;
constexpr double kHeadroom = 0.85;
constexpr double kGrowing = 1.25;  // a round of startup that grows less is flat
constexpr double kTeaches = 1.4;   // one that grows as much teaches the noise floor
constexpr int kFlatRounds = 3;
constexpr int kFlatLossyRounds = 2;     // with loss beyond the floor
constexpr double kTellingPackets = 40;  // a round of fewer says nothing of growth
constexpr int kQueuedSamples = 6;       // in a row; others' bursts are shorter, and hosts' delays
constexpr int kUpRounds = 2;
constexpr double kFound = 1.15;  // a probe that finds so much more is followed by another
constexpr int kFirstProbeRounds = 16;
constexpr int kDrainRounds = 4;
constexpr int kProbeRounds = 63;
constexpr Duration kProbeAfter = std::chrono::seconds(2);
constexpr int kReliefRounds = 4;
constexpr int kReliefEvery = 64;
constexpr Duration kReliefAfter = std::chrono::seconds(5);
constexpr double kLossMargin = 0.02;   // BBRv3's threshold, above the floor
constexpr double kOverloaded = 0.2;    // so much excess: capacity has fallen
constexpr double kCeilingRoom = 1.15;  // CUBIC's queue lets its window pass what the line carries
constexpr double kPacketsMin = 4;

constexpr double kQueueSeen = 100e3;  // ns; less is what hosts do
constexpr Duration kQueueWindow = std::chrono::seconds(10);
constexpr int kJudgedRounds = 8;
constexpr Duration kQueueMin = std::chrono::milliseconds(5);

double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

}  // namespace

// Whether the queue did not get empty in this round: then it is full, or nearly.
bool Wan::queue_stood() const {
  const auto least = static_cast<double>(round_queue_.count());
  const double train = 2 * kPacketBytes * 8e9 / std::max(rate(), 1.0);  // passes the line in ns
  return round_queue_ > std::max(kQueueMin, rtt_min_ / 4) ||
         least > std::max(kQueueSeen + train, queue_max_.value() / 2);
}

void Wan::enter(State state) {
  state_ = state;
  state_rounds_ = 0;
  phase_tally_ = {};
  ++pace_.phase;
}

void Wan::on_sample(const Sample& sample) {
  rtt_ = rtt_.count() == 0 ? sample.rtt : rtt_ + (sample.rtt - rtt_) / 8;
  rtt_min_ = rtt_min_.count() == 0 ? sample.rtt_min : rtt_min_ + (sample.rtt_min - rtt_min_) / 8;
  if (sample.interval.count() > 0) {
    const double rate = 8e9 * static_cast<double>(sample.delivered_bytes) /
                        static_cast<double>(sample.interval.count());
    if (!sample.limited || rate > rate_.value()) rate_.add(rate);
    round_rate_ = std::max(round_rate_, rate);
  }
  // What startup's overshoot lost is known from its end on, and says nothing of what came later.
  if (state_ == State::startup || sample.now - sample.rtt - rtt_ / 2 >= startup_left_) {
    for (Tally* tally : {&round_, &cycle_}) {
      tally->covered += sample.covered;
      tally->lost += sample.lost;
    }
  }
  if (sample.phase == pace_.phase) {
    phase_tally_.covered += sample.covered;
    phase_tally_.lost += sample.lost;
  }
  if (state_ == State::startup) {
    startup_window_ += static_cast<double>(sample.newly_delivered_bytes);
  }
  round_used_ |= !sample.limited;
  round_queue_ = std::min(round_queue_, sample.queueing);
  queue_max_.add(static_cast<double>(sample.queueing.count()));
  if (sample.now - queue_window_began_ >= kQueueWindow) {
    queue_window_began_ = sample.now;
    queue_max_.next_window();
  }
  queued_ = sample.queueing > std::max(kQueueMin, rtt_min_ / 8) ? queued_ + 1 : 0;
  if (state_ == State::startup && queued_ >= kQueuedSamples) leave_startup(sample);
  if (sample.now - sample.rtt >= round_began_) on_round(sample);
  if (state_ == State::down &&
      static_cast<double>(sample.in_flight_bytes) <= kHeadroom * bdp_bytes()) {
    enter(State::cruise);
  }
  update_pace();
}

void Wan::on_round(const Sample& sample) {
  stood_ = queue_stood();
  ++state_rounds_;
  ++cycle_rounds_;
  ceiling_.on_round(sample.now, rtt_, round_used_,
                    2 * bdp_bytes() / (1 - floor_.value()) / kPacketBytes + kPacketsMin);
  if (state_ == State::startup) {
    on_startup_round(sample);
  } else if (state_ != State::drain) {
    judge_loss(sample);
  }
  leave_state(sample);
  round_ = {};
  round_rate_ = 0;
  round_used_ = false;
  round_queue_ = std::chrono::hours(1);
  round_began_ = sample.now;
}

void Wan::leave_state(const Sample& sample) {
  switch (state_) {
    case State::cruise:
      if (floor_.value() > 0 && may_relieve(sample.now)) {
        enter(State::relief);
      } else if (round_used_ &&
                 (sample.now - probed_ >= kProbeAfter || state_rounds_ >= kProbeRounds ||
                  (probed_rate_ == 0 && state_rounds_ >= kFirstProbeRounds))) {
        probed_ = sample.now;
        probed_rate_ = rate();
        rate_.next_window();
        enter(State::up);
      }
      break;
    case State::up:
      if (state_rounds_ < kUpRounds) break;
      // What the probe added arrived, and no queue came of it: startup had ended too early.
      if (rate() >= kFound * probed_rate_ && !stood_ && round_queue_ < kQueueMin) {
        ceiling_.begin(sample.now, bdp_bytes() / (1 - floor_.value()) / kPacketBytes);
        probed_rate_ = rate();
        enter(State::up);
      } else {
        enter(State::down);
      }
      break;
    case State::drain:
      // Two round trips at least: what startup's last packets delivered is the line's rate.
      if (state_rounds_ < 2) break;
      if (static_cast<double>(sample.in_flight_bytes) > bdp_bytes() &&
          state_rounds_ < kDrainRounds) {
        break;
      }
      cycle_ = {};
      cycle_rounds_ = 0;
      ceiling_.begin(sample.now, bdp_bytes() / (1 - floor_.value()) / kPacketBytes);
      enter(State::cruise);
      break;
    case State::down:
      if (state_rounds_ >= kDrainRounds) enter(State::cruise);
      break;
    case State::relief:
      if (state_rounds_ > kReliefRounds) end_relief(sample);
      break;
    case State::startup:
      break;
  }
}

void Wan::on_startup_round(const Sample& sample) {
  if (!round_used_) return;
  const double grown = startup_rate_ > 0 ? rate() / startup_rate_ : kTeaches;
  // Of two growing rounds the first: in the second, the line may have been full already.
  if (grown >= kTeaches && !queue_stood()) floor_.teach(growing_.covered, growing_.lost);
  growing_ = grown >= kTeaches ? round_ : Tally{};
  if (grown >= kGrowing) {
    startup_rate_ = rate();
    flat_rounds_ = 0;
    if (!queue_stood()) return;
  }
  if (round_.covered < kTellingPackets && !queue_stood()) return;
  ++flat_rounds_;
  const bool lossy = floor_.excess(round_.covered, round_.lost, kLossMargin) > 0;
  if (flat_rounds_ >= (lossy ? kFlatLossyRounds : kFlatRounds) || queue_stood())
    leave_startup(sample);
}

void Wan::leave_startup(const Sample& sample) {
  probed_ = startup_left_ = sample.now;
  enter(State::drain);
}

void Wan::judge_loss(const Sample& sample) {
  // One event a round trip, as TCP: what was sent before a cut says nothing of it.
  if (sample.now - rtt_ < cut_ + sample.rtt / 4) return;
  // A small flow's rounds are too short to tell chance from congestion: several together may.
  judged_.covered += round_.covered;
  judged_.lost += round_.lost;
  const Tally judged = judged_;
  const double excess = floor_.excess(judged.covered, judged.lost, kLossMargin);
  if (++judged_rounds_ >= kJudgedRounds || excess > 0) {
    judged_ = {};
    judged_rounds_ = 0;
  }
  if (excess <= 0) return;
  // A probe found the line's end: the rate before it stays.
  if (state_ == State::up) return enter(State::down);
  if (excess > kOverloaded * judged.covered) rate_.bound(round_rate_);
  if (may_relieve(sample.now)) suspect_ = {judged.covered, judged.lost, ceiling_};
  cut(sample);
  if (suspect_.covered > 0) enter(State::relief);
}

bool Wan::may_relieve(Instant now) const {
  if (state_ == State::relief || !round_used_) return false;
  return relieved_.ns == 0 || (cycle_rounds_ >= kReliefEvery && now - relieved_ >= kReliefAfter);
}

void Wan::cut(const Sample& sample) {
  cut_ = sample.now;
  const double under_way = rate() / (1 - floor_.value()) / 8 * seconds(rtt_) / kPacketBytes;
  ceiling_.cut(sample.now, under_way);
}

void Wan::end_relief(const Sample& sample) {
  if (!queue_stood()) {
    floor_.doubt();
    floor_.teach(phase_tally_.covered, phase_tally_.lost);
  }
  if (suspect_.covered > 0 && floor_.excess(suspect_.covered, suspect_.lost, kLossMargin) <= 0) {
    ceiling_ = suspect_.ceiling;  // the network's own loss, as half the rate shows
  }
  suspect_ = {};
  // What no single round could show: normal times lost more than relief did.
  if (floor_.excess(cycle_.covered, cycle_.lost, kLossMargin / 2) > 0) cut(sample);
  cycle_ = {};
  cycle_rounds_ = 0;
  relieved_ = sample.now;
  enter(State::cruise);
}

void Wan::update_pace() {
  if (rate() <= 0) return;
  // Where the queue stands, nothing more is needed to keep the line busy.
  const double open = stood_ ? 1 : 1 - floor_.value();
  const double rtt_seconds = std::max(seconds(rtt_), 1e-6);
  double bits = kGain[static_cast<int>(state_)] * rate() / open;
  if (state_ == State::startup) bits = std::max(bits, 10 * kPacketBytes * 8 / rtt_seconds);
  double window = kInFlightGain * bdp_bytes() / open;
  window =
      std::max(window, state_ == State::startup ? startup_window_ : kPacketsMin * kPacketBytes);
  if (ceiling_.any()) {
    bits = std::min(bits, kCeilingRoom * ceiling_.packets() * kPacketBytes * 8 / rtt_seconds);
  }
  pace_.bits_per_second = std::max(bits, kPacketsMin * kPacketBytes * 8 / rtt_seconds);
  pace_.in_flight_bytes = static_cast<std::uint64_t>(window);
}

}  // namespace leeway::congestion
