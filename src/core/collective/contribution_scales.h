// Scales of the contributions to this rank's shard. Keeps what is known of each link and which
// contributions may be used, and asks the estimator (estimate/scale_plan.h) for each packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bitmap.h"
#include "collective/operation_plan.h"
#include "estimate/link_history.h"
#include "estimate/scale_plan.h"
#include "protocol/flow.h"

namespace leeway::collective {

class ContributionScales {
 public:
  // `history`: of the links into this rank, before this operation. `packets`: of our shard. The
  // plan must outlive the operation. All scales are 1 until a function below says others.
  void begin(const OperationPlan& plan, const estimate::LinkHistory& history,
             std::uint32_t packets);

  void on_weight(Rank from, float weight) { weights_[from] = weight; }
  // Sum of the weights of the ranks whose contribution was heard, including this one's.
  double units() const;

  // Takes counts and weights from the ledgers of all senders: those of a packet that lacks
  // contributions depend on them.
  void tally(std::span<const protocol::ReceiveFlow> flows);
  // Takes a contribution that is not finite out of those counts, and out of its packet.
  void uncount(Rank rank, PacketIndex index);
  // Makes partial() go by the tallies.
  void build();
  // After build(): scales depend on rates of earlier operations, even where nothing was lost.
  bool estimated_rates() const { return scale_plan_.estimated_rates(); }
  // Returns true if a packet with the rank's contribution would use it.
  bool uses(Rank rank) const {
    return plan_->reduction.op != ReduceOp::avg || tallies_[rank].weight != 0.0;
  }
  // Returns true if the contribution is here and counted.
  bool has(Rank rank, PacketIndex index, std::span<const protocol::ReceiveFlow> flows) const;

  // Every contribution to a packet is here, so its scales do not depend on other losses.
  estimate::BlockScales complete();
  // Scales for the contributions to the packet that are here.
  estimate::BlockScales partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows);
  // Scales for that same packet without those that `left_out` names, some of which it has. `block`:
  // what complete(), partial() or this function returned for it.
  estimate::BlockScales without(std::span<const Rank> left_out, PacketIndex index,
                                const estimate::BlockScales& block);

  // By rank, as the latest of those three calls decided; 0 means absent.
  std::span<const float> values() const { return scales_; }
  // Moments of these, if noise is measured.
  const estimate::WeightMoments& moments() const { return moments_; }

 private:
  estimate::BlockScales take(PacketIndex index);
  std::uint64_t& word(Rank rank) { return mask_[rank / 64]; }

  const OperationPlan* plan_ = nullptr;
  std::uint32_t packets_ = 0;
  std::vector<float> weights_;  // c_i as heard so far; NaN if not
  std::vector<estimate::LinkTally> tallies_;
  // By rank and packet: not finite, and taken out of the counts. No bits if there was none.
  Bitmap uncounted_;
  estimate::ScalePlan scale_plan_;
  bool for_complete_ = false;        // scales_ are those of complete packets
  bool nobody_has_units_ = false;    // so complete packets are as untouched as empty ones
  std::vector<std::uint64_t> mask_;  // contributions of the packet that is summed
  std::vector<float> scales_;
  estimate::WeightMoments moments_;
};

}  // namespace leeway::collective
