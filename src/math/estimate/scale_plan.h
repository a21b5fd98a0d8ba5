// The scales of a lossy sum or average: a factor for each contribution that arrived.
//
//   result = sum over ranks i of scale_i * G_i + control * c
//
// G_i is rank i's contribution, a sum over its c_i units of work (c_i = its weight); c is a control
// variate, a guess of the result. `avg` estimates sum G / sum c, the mean per unit. `sum` (all
// weights are 1) estimates sum G, which is N times the average. What each estimator promises, and
// under which assumption: README.md, "Estimators".
//
// Scales are a function of the counts of every link, of which contributions a packet has, and of
// keyed random bits. They never depend on values. Two ranks that know the same facts get the same
// bits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::estimate {

// What an owner knows of one link into it when an operation settles. There is also one for the
// owner's own contribution, as if a link had brought it.
struct LinkTally {
  std::uint32_t sent = 0;     // n_i: packets the link carries for this shard
  std::uint32_t arrived = 0;  // k_i: how many of them can be used, 0 .. n_i
  // c_i: units of work behind the contribution, >= 0. It travels with the packets, so it is unknown
  // (NaN) if none arrived. The mean of the known weights then takes its place. Negative or infinite
  // weights count as unknown.
  double weight = std::numeric_limits<double>::quiet_NaN();
  // Probability that a packet of this link arrives, from earlier operations, 0 .. 1.
  // symmetric_ratio uses it when n_i == 1, where the counts of this operation say nothing.
  double prior_rate = 1.0;
  // Probability that any packet of a flow this short arrives before the owner settles, from earlier
  // operations. horvitz_thompson and augmented divide by it. 1 unless deadlines cut whole flows.
  double heard_rate = 1.0;
};

// Facts about the scales of one packet's elements.
struct BlockScales {
  std::uint32_t contributors =
      0;                  // contributions used, the owner's included unless a virtual loss took it
  bool untouched = true;  // no contribution with positive weight: all scales are 0
  float control = 0.0f;   // scale of the external control variate; 0 unless augmented has one
};

// Moments of the weights by which a result summed its contributions, as means over its elements.
// w_i is the weight of rank i's mean per unit of work in the result, f_i its weight when nothing is
// lost. For a sum, they are the weights in the average (sum / N).
struct WeightMoments {
  double sum = 0.0;              // mean of sum w, with the control variate's weight
  double sum_squared = 0.0;      // mean of (sum w)^2
  double squares = 0.0;          // mean of sum w^2
  double encoded_squares = 0.0;  // mean of sum w^2 without the owner's, which is not encoded
  double control_squares = 0.0;  // mean square of an external control variate's weight
  double fair_products = 0.0;    // mean of sum w f
  double fair_squares = 0.0;     // mean of sum f^2

  void add(const WeightMoments& packet, double elements);  // adds up packets; over() then
  WeightMoments over(double elements) const;               // gives their means, 0 for 0 elements
};

// Least heard rate (LinkTally::heard_rate) that is used. Scales are divided by it, so a rank that
// was silent for long weighs at most twice its share when it returns. The price is a bias on links
// whose flows are mostly cut.
inline constexpr double kHeardRateMin = 0.5;

// The scales of one operation on one owner. Build it when the operation's counts are final, then
// ask it once per packet.
class ScalePlan {
 public:
  struct Inputs {
    Estimator estimator = Estimator::ratio;
    ReduceOp op = ReduceOp::avg;       // sum or avg
    std::span<const LinkTally> links;  // links by rank, including the owner's own
    Rank owner = 0;
    bool external_control = false;  // augmented: the caller brings a control variate
    std::uint64_t seed = 0;         // the communicator's; with `step` it keys the virtual losses
    std::uint32_t step = 0;
  };

  ScalePlan() = default;
  // Copies the inputs that it needs; the only call that allocates.
  explicit ScalePlan(const Inputs& inputs);

  // Scales for a complete packet in an operation without any loss: 1/sum c (avg) or 1 (sum) for
  // every rank with units, whatever the estimator. Do not use them if estimated_rates(): dividing
  // by an estimated rate is unbiased only if complete packets are divided, too.
  BlockScales complete_scales(std::span<float> out) const;

  // Returns whether the scales depend on rates of earlier operations, even if nothing is lost in
  // this operation.
  bool estimated_rates() const;

  // Scales for a packet whose contributions are the set bits of `mask` (bit i of word i/64). The
  // owner's bit is clear only if its own contribution may not be summed. `block_index` is the
  // packet's number in the shard. Ranks that are absent or have no units get exactly 0, so do not
  // read their values.
  BlockScales scales(std::span<const std::uint64_t> mask, std::uint32_t block_index,
                     std::span<float> out) const;

  // moments() returns the weight moments of one packet with these scales and this control variate.
  // complete_moments() has those of a complete packet, exact whatever the rounding of its scales.
  WeightMoments moments(std::span<const float> scales, float control) const;
  WeightMoments complete_moments() const;

 private:
  struct Present {
    std::uint32_t count = 0;
    double weight = 0.0;  // sum of c_i
  };

  void take_weights(ReduceOp op);
  void take_link_scales();
  bool virtually_lost(std::span<const std::uint64_t> mask, std::uint32_t block_index) const;
  double virtual_loss(std::span<const std::uint64_t> mask) const;
  Present present_in(std::span<const std::uint64_t> mask, bool owner_counts) const;
  bool has_units(std::size_t rank) const { return links_[rank].weight > 0.0; }

  void spread_evenly(std::span<const std::uint64_t> mask, double scale, std::span<float> out) const;
  void stratify(std::span<const std::uint64_t> mask, std::span<float> out) const;
  void rescale_links(std::span<const std::uint64_t> mask, std::span<float> out) const;
  float place_control(std::span<const std::uint64_t> mask, std::span<float> out) const;

  Estimator estimator_ = Estimator::ratio;
  Rank owner_ = 0;
  bool external_control_ = false;
  std::uint64_t seed_ = 0;
  std::uint32_t step_ = 0;
  std::vector<LinkTally> links_;    // with every c_i known or assumed
  std::vector<double> link_scale_;  // w_i = n_i/k_i over the heard rate; 0 if nothing arrived
  double total_weight_ = 0.0;       // C = sum of c_i over all ranks
  double gain_ = 1.0;               // result over average: N for a sum, else 1
  double fair_ = 0.0;  // gain/C, the scale of a contribution when nothing is lost; 0 when C = 0
};

}  // namespace leeway::estimate
