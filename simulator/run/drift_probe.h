// Measures how far apart the replicas of a replica step are. The library's DriftReport
// (leeway/replica.h) exchanges samples for this. Here the samples are read from all ranks' memory
// after every round, and compared with the predictions of estimate/drift.h.
//
// Ranks return from a broadcast at different times, so each rank stores its sampled values here.
// The measures include a round only if all ranks took part in it. They leave out the first tenth of
// the rounds, in which ages are still growing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "estimate/drift_meter.h"
#include "run/replica_rank.h"
#include "scenario.pb.h"
#include "schedule/shard_map.h"
#include "workload/workload.h"

namespace leeway::sim {

class DriftProbe {
 public:
  DriftProbe(const scenario::Scenario& scenario, std::size_t elements);

  // Call it when `rank` has returned from the broadcast of `round`.
  void on_broadcast(std::uint32_t rank, std::uint32_t round, std::span<const float> parameters,
                    const ReplicaRank& replica);

  // Ends the round. Returns the mean squared distance between the copies of an element on two ranks
  // that do not own it. Negative if not all ranks took part, or there are no two such ranks.
  double close(std::uint32_t round);

  // Returns the measures "drift.*": measured and predicted mean squares per element, the standard
  // error of the measured pair distance, the share of pairs with different versions, and the inputs
  // of the predictions.
  std::vector<Measure> measures() const;

 private:
  struct Sampled {
    std::size_t element;
    Rank owner;
  };
  struct Open {
    std::vector<std::vector<float>> values;  // by rank, then sample
    std::vector<std::vector<std::uint32_t>> ages;
    std::uint32_t ranks = 0;
  };
  struct RoundSums {
    double pair = 0, owner = 0;
    std::uint64_t pairs = 0, owners = 0, differ = 0, missed = 0;
  };

  // `counts` is false for the first rounds, which are left out.
  RoundSums compare(const Open& open, bool counts);
  void compare_sample(const Open& open, std::size_t sample, bool counts, RoundSums& sums);
  void follow_steps(const Open& open, bool counts);

  std::uint32_t ranks_;
  std::uint32_t first_round_;
  std::vector<Sampled> samples_;
  estimate::DriftMeter meter_;
  std::map<std::uint32_t, Open> open_;
  std::vector<float> owners_before_;  // the owners' values one round ago
  std::vector<float> steps_;
  std::vector<std::uint64_t> of_age_ =
      std::vector<std::uint64_t>(16);  // copies of one element, by age
  std::vector<double> pair_by_round_;
  std::vector<double> owner_by_round_;
  std::uint64_t differ_ = 0, pairs_ = 0, missed_ = 0, copies_ = 0;
};

}  // namespace leeway::sim
