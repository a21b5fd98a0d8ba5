#include "congestion/wan_startup.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leeway::congestion {
namespace {

constexpr double kCarefulGain = 1.25;
constexpr double kGrowing = 1.25;    // a round that grows less is flat
constexpr double kTeaches = 1.4;     // least growth of a round that teaches the noise floor
constexpr int kFlatLossyRounds = 2;  // if loss exceeds the floor
constexpr double kFloodPackets = 20;
constexpr double kFloodSigmas = 2;
constexpr double kTellingPackets = 40;  // a round of fewer packets says nothing of growth
constexpr Duration kQueueMin = std::chrono::milliseconds(5);

}  // namespace

void WanStartup::on_sample(const Sample& sample, const WanRound& round, const WanPath& path) {
  window_ += static_cast<double>(sample.newly_delivered_bytes);
  // A report of few packets may show too high a rate. The true rate is at most what is in flight,
  // divided by the round trip.
  const double most = window_ * 8 / std::max(to_seconds(path.rtt_min()), 1e-6);
  rate_ = std::min(std::max(rate_, round.rate), most);
  queued_ = sample.queueing > std::max(kQueueMin, path.rtt_min() / 8) ? queued_ + 1 : 0;
}

void WanStartup::on_round(const WanRound& round, const WanPath& path, WanLosses& losses) {
  const bool lossy = losses.overflowed(round);
  const Duration target = path.target(rate_);
  // More loss than kMax is no noise, and not chance either if there were many packets. Rounds of
  // fewer than kFloodPackets packets do not count: the very first packets may have come before
  // their peer was ready.
  const double most = NoiseFloor::kMax * round.loss.covered;
  const double chance = round.loss.covered < kTellingPackets ? kFloodSigmas * std::sqrt(most) : 0;
  const bool flooded = round.marked || (lossy && round.loss.covered >= kFloodPackets &&
                                        round.loss.lost > most + chance);
  const bool seen = round.marked || path.longest_queue() > static_cast<double>(target.count());
  const bool again = std::exchange(flooded_, flooded);
  // A round that the application limited says nothing about growth, but losses while a queue stands
  // count.
  if ((flooded && (seen || again)) || (lossy && !round.used && round.queue_most > target))
    flat_rounds_ = kFlatRounds;
  if (!round.used) return;
  // Losses without a visible queue are either a burst, or come from a queue too short to be seen.
  // Wait for the next round: only a queue loses packets again.
  if (flooded && !seen && !again) {
    gain_ = 1;
    growing_ = round.loss;
    return;
  }
  // When a queue begins, the rate grows by less in the next round.
  const bool begins = round.queue_most > 2 * target;
  gain_ = begins ? kCarefulGain : kGain;
  const double grown = grown_from_ > 0 ? rate_ / grown_from_ : kTeaches;
  const bool queued = round.queue_least > target;
  // If the rate grew in two rounds in a row, the path was not full in the first round. The losses
  // of the first round then teach the floor. In the second round the path may have been full
  // already.
  if (grown >= kTeaches && round.queue_most < target / 2) losses.teach(growing_);
  growing_ = grown >= kTeaches ? round.loss : LossTally{};
  if (grown >= kGrowing) {
    grown_from_ = rate_;
    if (flooded) return;
    flat_rounds_ = 0;
    if (!queued) return;
  }
  if (round.loss.covered < kTellingPackets && !queued) return;
  flat_rounds_ += queued ? kFlatRounds : 1;
  if (lossy && (begins || flat_rounds_ >= kFlatLossyRounds)) flat_rounds_ = kFlatRounds;
}

}  // namespace leeway::congestion
