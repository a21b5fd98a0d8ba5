// Startup of `wan`. The rate grows with what arrives. Startup ends when the rate stops growing, a
// queue stands, or more is lost than noise explains. Meanwhile the noise floor is learnt.
#pragma once

#include "congestion/controller.h"
#include "congestion/wan_losses.h"
#include "congestion/wan_path.h"
#include "congestion/wan_round.h"

namespace leeway::congestion {

class WanStartup {
 public:
  // Call it for each sample, after the sample was added to `round` and `path`.
  void on_sample(const Sample& sample, const WanRound& round, const WanPath& path);
  // Call it when a round trip is over.
  void on_round(const WanRound& round, const WanPath& path, WanLosses& losses);
  bool over() const { return queued_ >= kQueuedSamples || flat_rounds_ >= kFlatRounds; }

  double rate() const { return rate_; }            // bits per second that arrive
  double gain() const { return gain_; }            // factor on the rate
  double window_bytes() const { return window_; }  // may be in flight

 private:
  static constexpr double kGain = 2.77;
  static constexpr int kFlatRounds = 3;
  static constexpr int kQueuedSamples = 6;  // others' bursts and hosts' delays are shorter

  double rate_ = 0;
  double window_ = 10 * kPacketBytes;  // grows by what arrives, as TCP's slow start
  double grown_from_ = 0;              // the rate after the latest round trip that grew
  int flat_rounds_ = 0;
  bool flooded_ = false;  // the previous round lost too much for noise
  int queued_ = 0;        // samples in a row that found a queue
  LossTally growing_;     // losses of the previous round, if startup grew in it
  double gain_ = kGain;
};

}  // namespace leeway::congestion
