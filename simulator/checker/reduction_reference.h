// The value that an owner's shard must have, given which contributions came. It is their sum in
// rank order, decoded as they were sent, with the estimator's scales of src/math/estimate.
//
// This file does its own additions and products. It takes scales (estimate::ScalePlan) and the
// decoding of bytes (codec::accumulate) from the library, whose own tests cover them.
#pragma once

#include <span>
#include <vector>

#include "checker/call_ledger.h"
#include "estimate/link_history.h"
#include "estimate/scale_plan.h"
#include "leeway/report.h"

namespace leeway::sim {

class ReductionReference {
 public:
  ReductionReference(int size, std::uint64_t seed);

  // Comparison of a rank's result with the reference.
  struct Outcome {
    std::uint64_t packets = 0;  // packets compared
    std::uint64_t wrong = 0;    // packets in which a bit differs
    std::uint64_t far = 0;      // packets that differ by more than rounding
    std::uint32_t first_wrong = 0;
    float expected = 0;  // expected value of the first wrong element
    float found = 0;
    // The checker knows, or found by trying, which contributions were summed.
    bool resolved = true;
    std::vector<std::uint64_t> histogram;  // packets, by number of contributors
    std::uint64_t untouched = 0;           // elements
    std::uint64_t non_finite = 0;          // packets of contributions that were left out
  };

  // `report`: the engine's report of this call. `result`: the rank's whole result buffer.
  Outcome check(const CallLedger& call, Rank rank, const CollectiveReport& report,
                std::span<const float> result);

  // Updates the delivery rates that the scales of later calls depend on. Call it after check().
  void learn(const CallLedger& call, Rank rank);

 private:
  struct Sender {
    std::uint32_t arrived = 0;
    bool unsure = false;  // some of the packets that came may have been late
    bool counted = true;  // the number of packets that counted is known
  };
  void take_senders(const CallLedger& call, Rank rank, const CollectiveReport& report);
  float weight_of(const FlowLedger& flow, Rank from) const;
  bool is_weight_open(const FlowLedger& flow, Rank from) const;
  bool plan_scales(const CallLedger& call, Rank rank);
  bool is_certain(const CallLedger& call, Rank rank, Rank from, std::uint32_t index) const;
  bool is_possible(const CallLedger& call, Rank rank, Rank from, std::uint32_t index) const;
  void reduce(const CallLedger& call, Rank rank, std::uint32_t index, std::uint64_t choice);
  bool is_finite(const CallLedger& call, Rank rank, Rank from, std::uint32_t index);
  bool leave_out_non_finite(const CallLedger& call, Rank rank, std::uint32_t index);
  void uncount_non_finite(const CallLedger& call, Rank rank);
  void sum(const CallLedger& call, Rank rank, std::uint32_t index);
  void check_packet(const CallLedger& call, Rank rank, std::uint32_t index,
                    std::span<const float> result, Outcome& outcome);
  void compare(std::span<const float> expected, std::span<const float> found, std::uint32_t index,
               Outcome& outcome) const;
  void check_adopted(const CallLedger& call, Rank rank, std::span<const float> result,
                     Outcome& outcome);

  int size_;
  std::uint64_t seed_;
  // Delivery rates by owner. NaN stands for a rate that can no longer be known.
  std::vector<estimate::LinkHistory> histories_;
  std::vector<Sender> senders_;
  std::vector<estimate::LinkTally> tallies_;
  estimate::ScalePlan scale_plan_;
  bool all_complete_ = false;
  std::vector<float> complete_scales_;
  std::vector<float> scales_;
  std::vector<std::uint64_t> mask_;
  // By packet and sender: the contribution is not finite and is left out of the counts that scales
  // depend on.
  std::vector<bool> uncounted_;
  std::vector<Rank> open_;  // senders whose packet may or may not count
  estimate::BlockScales complete_block_;
  estimate::BlockScales block_;
  std::vector<float> shard_;    // the reference's shard
  std::span<float> packet_;     // the current packet in shard_
  std::uint64_t left_out_ = 0;  // contributions left out of that packet
  std::vector<float> decoded_;
  std::vector<std::byte> encoded_;
  std::vector<bool> unresolved_;  // by packet
};

}  // namespace leeway::sim
