// Decides for `wan` which losses the network's own noise explains, and which cuts of the rate must
// be taken back because the noise floor has since learnt to explain their losses.
#pragma once

#include <optional>
#include <utility>

#include "base/time.h"
#include "congestion/noise_floor.h"
#include "congestion/wan_round.h"

namespace leeway::congestion {

class WanLosses {
 public:
  const NoiseFloor& floor() const { return floor_; }
  // Adds losses that are the network's own.
  void teach(const LossTally& loss) { floor_.teach(loss.covered, loss.lost); }
  // Lowers the floor. Call it when nothing has confirmed the floor for a while.
  void decay() { floor_.decay(); }

  // Returns true if packets overflowed: a queue marked datagrams, or loss exceeds the floor by a
  // margin. A small flow's round trip has too few packets to tell chance from congestion, so up to
  // kJudgedRounds round trips count together.
  bool overflowed(const WanRound& round) {
    judged_ += round.loss;
    const bool is = round.marked || exceeds(judged_);
    if (is) overflow_ = round.marked ? std::nullopt : std::optional(judged_);
    end_round(is);
    return is;
  }
  // Like overflowed(), for use beside flows that fill the queue. Here loss counts without a margin,
  // if it exceeds the floor by two standard deviations and not three.
  bool lossy_beside_others(const WanRound& round) {
    judged_ += round.loss;
    const bool is = round.marked || floor_.more(judged_.covered, judged_.lost);
    end_round(is);
    return is;
  }
  // Forgets losses so far, so that later round trips are judged alone.
  void judge_anew() {
    judged_ = {};
    judged_rounds_ = 0;
  }
  // Returns true if the floor now explains the losses of the latest overflow. When they occurred,
  // the floor may have known too little of bursts.
  bool overflow_was_noise() const { return overflow_ && !exceeds(*overflow_); }

  // Call it when the rate is cut. `rate`: the rate before the cut. `by_loss`: true if loss or marks
  // alone were the reason, because no queue stood.
  void on_cut(Instant now, double rate, bool by_loss) {
    if (!by_loss || !overflow_) {
      before_ = 0;
      return;
    }
    if (before_ == 0) {
      before_ = rate;
      doubted_ = {};
      doubt_until_ = now + kDoubtFor;
    }
    doubted_ += *overflow_;
  }
  // If the floor now explains the losses of the latest cuts, returns the rate before these cuts.
  std::optional<double> take_back(Instant now) {
    if (now > doubt_until_) before_ = 0;
    if (before_ == 0 || exceeds(doubted_)) return std::nullopt;
    return std::exchange(before_, 0);
  }

 private:
  static constexpr int kJudgedRounds = 8;
  static constexpr double kMargin = 0.02;
  static constexpr Duration kDoubtFor = std::chrono::seconds(3);

  bool exceeds(const LossTally& loss) const {
    return floor_.excess(loss.covered, loss.lost, kMargin) > 0;
  }
  void end_round(bool judged) {
    if (++judged_rounds_ >= kJudgedRounds || judged) judge_anew();
  }

  NoiseFloor floor_;
  LossTally judged_;  // losses in the latest round trips
  int judged_rounds_ = 0;
  std::optional<LossTally> overflow_;  // losses of the latest; unset if marks showed it
  // Losses of the latest cuts for which loss was the only sign. The floor may explain these losses
  // later.
  LossTally doubted_;
  double before_ = 0;  // the rate before the first of these cuts, or 0
  Instant doubt_until_{0};
};

}  // namespace leeway::congestion
