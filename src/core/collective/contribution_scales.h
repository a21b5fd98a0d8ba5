// Computes the factors ("scales") for the contributions to this rank's shard. Keeps the packet
// counts of each sender, and asks the estimator (estimate/scale_plan.h) for the scales of each
// packet.
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
  // Returns the sum of the units of work of this rank and of all ranks whose weight has arrived.
  double units() const;

  // Takes each sender's packet count and weight from its ledger (`flows`), as build() needs them.
  void tally(std::span<const protocol::ReceiveFlow> flows);
  // Leaves out the contribution of `rank` to packet `index`, because it is not finite. The sender's
  // packet count falls by one.
  void uncount(Rank rank, PacketIndex index);
  // Prepares partial() for the present counts and weights.
  void build();
  // Returns true if build() found scales that depend on delivery rates of earlier operations. Such
  // scales apply to complete packets, too, so these must be scaled by partial().
  bool estimated_rates() const { return scale_plan_.estimated_rates(); }
  // Returns true if contributions of the rank are used at all. An average ignores a rank that has
  // no units of work.
  bool uses(Rank rank) const {
    return plan_->reduction.op != ReduceOp::avg || tallies_[rank].weight != 0.0;
  }
  // Returns true if the contribution arrived, or is this rank's own, and uncount() was not called
  // for it.
  bool has(Rank rank, PacketIndex index, std::span<const protocol::ReceiveFlow> flows) const;

  // Finds the scales of a packet that has all contributions. They are the same for all such
  // packets.
  estimate::BlockScales complete();
  // Finds the scales of a packet from the contributions to it that have arrived.
  estimate::BlockScales partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows);
  // Finds the scales of packet `index` again, without the ranks in `left_out` (at least one). The
  // previous call of complete(), partial() or without() must have been for the same packet. `block`
  // is what that call returned.
  estimate::BlockScales without(std::span<const Rank> left_out, PacketIndex index,
                                const estimate::BlockScales& block);

  // Scales by rank that complete(), partial() or without() found last; 0 for a contribution not
  // used.
  std::span<const float> values() const { return scales_; }
  // Moments of values(), if noise is measured.
  const estimate::WeightMoments& moments() const { return moments_; }

 private:
  estimate::BlockScales take(PacketIndex index);
  std::uint64_t& word(Rank rank) { return mask_[rank / 64]; }

  const OperationPlan* plan_ = nullptr;
  std::uint32_t packets_ = 0;
  std::vector<float> weights_;  // units of work by rank; NaN for a rank not heard yet
  std::vector<estimate::LinkTally> tallies_;
  // Bit rank * packets_ + packet is set for each uncounted contribution. The bitmap has size 0 if
  // there is no such contribution.
  Bitmap uncounted_;
  estimate::ScalePlan scale_plan_;
  bool for_complete_ = false;        // scales_ are those of complete packets
  bool nobody_has_units_ = false;    // complete packets then count as untouched, as empty ones do
  std::vector<std::uint64_t> mask_;  // contributions of the packet that is summed
  std::vector<float> scales_;
  estimate::WeightMoments moments_;
};

}  // namespace leeway::collective
