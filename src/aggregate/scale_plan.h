// From what arrived to what each contribution is multiplied by: the estimators of lossy sums and
// averages.
//
// A shard's owner makes one plan when the shard settles, from the tallies of all links, and then
// asks it for the scales of every block (packet-sized range) from that block's arrival bits:
//   result = sum over ranks of scale[i] * G_i  +  control * V
// G_i: rank i's contribution, a sum over its c_i units of work; V: the caller's control variate, in
// units of the result. Formulas, assumptions, variances: README.md, "Estimators". Pure arithmetic
// in double, in rank order: equal tallies and bits give equal scales on every machine.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::aggregate {

inline constexpr double kUnknownWeight = std::numeric_limits<double>::quiet_NaN();

// What the owner knows about one rank's contribution to this shard. Of the owner's own entry only
// `weight` counts.
struct Link {
  std::uint32_t sent = 0;     // n: packets of the whole flow
  std::uint32_t arrived = 0;  // k <= n: distinct packets of it that arrived
  double weight =
      1.0;  // c >= 0; kUnknownWeight if nothing told it: counts as the mean of the known ones
  double prior_rate =
      1.0;  // q, 0 < q <= 1: arrival rate of earlier rounds; used where n == 1 (see LinkRate)
};

struct ScaleRules {
  ReduceOp op = ReduceOp::avg;  // avg, or sum (all weights 1)
  Estimator estimator = Estimator::ratio;
  Rank owner = 0;
  bool control_given =
      false;  // augmented: the caller has a control variate; otherwise the own contribution serves
};

// Bit i % 64 of word i / 64 says whether rank i's contribution to the block is there. The owner's
// own bit is set unless symmetric_ratio lost it virtually.
using ArrivalMask = std::span<const std::uint64_t>;

struct BlockScales {
  float control = 0.0f;  // 0: the variate need not be read (nor may a NaN in it spread)
  std::uint32_t contributors =
      0;  // contributions of positive weight that entered; 0: all scales are zero
};

class ScalePlan {
 public:
  // Allocates only if there are more links than ever before.
  void prepare(const ScaleRules& rules, std::span<const Link> links);

  // scale.size() == number of links; scales of absent ranks are 0. When everything arrived a sum
  // has all scales exactly 1 and every average of equal weights exactly 1/N (rounded to float).
  BlockScales scales(ArrivalMask arrived, std::span<float> scale) const;

  // Chance with which symmetric_ratio loses the own contribution: the pooled loss rate of the links
  // (earlier rounds' where all flows have one packet).
  double virtual_loss_rate() const { return virtual_loss_rate_; }

  // Estimated variance that loss adds to one element of the result, from the contributions that
  // arrived (values of absent ranks are not read). `variate` as the caller gave it; ignored where
  // the own contribution serves.
  double element_variance(ArrivalMask arrived, std::span<const float> contributions,
                          double variate) const;

 private:
  void find_weights(std::span<const Link> links);
  void find_rates(std::span<const Link> links);
  double arrived_weight(ArrivalMask arrived) const;
  std::uint32_t contributors(ArrivalMask arrived) const;

  void fill_equal(ArrivalMask arrived, double each, std::span<float> scale) const;
  void fill_stratified(ArrivalMask arrived, std::span<float> scale) const;
  void fill_by_rate(ArrivalMask arrived, std::span<float> scale) const;
  double fill_augmented(ArrivalMask arrived, std::span<float> scale) const;

  double spread_variance(ArrivalMask arrived, std::span<const float> contributions) const;
  double rate_variance(ArrivalMask arrived, std::span<const float> contributions,
                       double centre) const;

  ScaleRules rules_;
  std::vector<double> weight_;       // c_i, unknown ones replaced by the mean
  std::vector<double> rate_weight_;  // w_i: inverse arrival rate of link i; the owner's is 1
  double total_weight_ = 0.0;        // C = sum of c_i over all ranks
  double squared_weight_ = 0.0;      // sum of c_i^2
  double numerator_ = 1.0;           // 1 for avg, C for sum
  double pooled_loss_ = 0.0;         // p over all links of this round
  double virtual_loss_rate_ = 0.0;
  double count_excess_ = 0.0;  // symmetric_ratio: E[1/K | K >= 1] - 1/N
};

// Whether symmetric_ratio loses the owner's own contribution to a block: a keyed draw, so that a
// round replays.
bool virtually_lost(double rate, std::uint64_t seed, std::uint32_t round, Rank owner,
                    std::uint32_t block);

}  // namespace leeway::aggregate
