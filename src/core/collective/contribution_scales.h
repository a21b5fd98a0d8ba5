// Computes the scales of the contributions to this rank's shard. It keeps the counts of each link,
// and asks the estimator (estimate/scale_plan.h) for each packet.
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
  // `history`: delivery rates of the links into this rank in earlier operations. `packets`: number
  // of packets of our shard. The plan must outlive the operation. All scales are 1 until
  // complete(), partial() or without() is called.
  void begin(const OperationPlan& plan, const estimate::LinkHistory& history,
             std::uint32_t packets);

  void on_weight(Rank from, float weight) { weights_[from] = weight; }
  // Sum of the weights of the ranks whose contribution was heard, including this one's.
  double units() const;

  // Takes counts and weights from the ledgers of all senders. The scales of packets that lack
  // contributions depend on them.
  void tally(std::span<const protocol::ReceiveFlow> flows);
  // Takes a contribution that is not finite out of those counts, and out of its packet.
  void uncount(Rank rank, PacketIndex index);
  // Prepares partial() with the present counts and weights.
  void build();
  // Returns true, after build(), if scales depend on rates of earlier operations. They do so even
  // where nothing was lost.
  bool estimated_rates() const { return scale_plan_.estimated_rates(); }
  // Returns true if the rank's contributions are used where they arrived. An average uses none of a
  // rank without units of work.
  bool uses(Rank rank) const {
    return plan_->reduction.op != ReduceOp::avg || tallies_[rank].weight != 0.0;
  }
  // Returns true if the contribution is here and was not taken out of the counts.
  bool has(Rank rank, PacketIndex index, std::span<const protocol::ReceiveFlow> flows) const;

  // Finds the scales of a packet that has all contributions. They do not depend on other losses.
  estimate::BlockScales complete();
  // Finds the scales for those contributions to the packet that are here.
  estimate::BlockScales partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows);
  // Finds the scales of the packet of the previous call without the ranks in `left_out`, of which
  // it has at least one. `block`: what complete(), partial() or this function returned for it.
  estimate::BlockScales without(std::span<const Rank> left_out, PacketIndex index,
                                const estimate::BlockScales& block);

  // Scales by rank that the latest of those three calls found; 0 for a contribution not used.
  std::span<const float> values() const { return scales_; }
  // Moments of these scales, if noise is measured.
  const estimate::WeightMoments& moments() const { return moments_; }

 private:
  estimate::BlockScales take(PacketIndex index);
  std::uint64_t& word(Rank rank) { return mask_[rank / 64]; }

  const OperationPlan* plan_ = nullptr;
  std::uint32_t packets_ = 0;
  std::vector<float> weights_;  // units of work by rank; NaN for a rank not heard yet
  std::vector<estimate::LinkTally> tallies_;
  // Contributions, by rank and packet, that were taken out of the counts. Has no bits if none was.
  Bitmap uncounted_;
  estimate::ScalePlan scale_plan_;
  bool for_complete_ = false;        // scales_ are those of complete packets
  bool nobody_has_units_ = false;    // complete packets then count as untouched, as empty ones do
  std::vector<std::uint64_t> mask_;  // contributions of the packet that is summed
  std::vector<float> scales_;
  estimate::WeightMoments moments_;
};

}  // namespace leeway::collective
