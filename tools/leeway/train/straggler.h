// Makes workers slow now and then: delays each micro-batch of `leeway train` by a sleep.
//
// Ranks of one machine share its cores, so they are slow together. The sleep makes them differ:
// four ranks on two cores then wait for each other as four machines would. A delay depends on
// (seed, step, rank, micro-batch) only, so runs with and without a threshold have the same delays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::tools::train {

// A rank whose delays are multiplied by `factor`.
struct SlowRank {
  int rank = 0;
  double factor = 1;

  friend bool operator==(const SlowRank&, const SlowRank&) = default;
};

struct StragglerModel {
  enum class Kind : std::uint8_t {
    none,
    constant,   // ms
    lognormal,  // ms * exp(shape * N(0,1)): a median of ms
    paper,      // ms * (1 + 0.5 * shape * l / E[l]), where l is 1 .. 999 with weight
                // exp(-(ln l - 4)^2 / 2) / l: the noise of arXiv 2306.10598's public code on a
                // micro-batch of ms
  };
  Kind kind = Kind::none;
  double ms = 0;
  double shape = 1;
  std::optional<SlowRank> slow;

  friend bool operator==(const StragglerModel&, const StragglerModel&) = default;
};

// Parses MODEL[,slow:RANK:FACTOR], where MODEL is none, constant:MS, lognormal:MEDIAN_MS[:SIGMA] or
// paper:MS[:FACTOR]; SIGMA and FACTOR are 1 unless given.
Result<StragglerModel> parse_straggler(std::string_view text);
std::string to_string(const StragglerModel& model);

class Straggler {
 public:
  // Longest delay, so that no call waits for ever.
  static constexpr double kDelayMsMax = 60'000;

  Straggler(const StragglerModel& model, std::uint64_t seed, int rank);

  Duration delay(std::uint64_t step, std::size_t micro_batch) const;

 private:
  double draw(std::uint64_t step, std::size_t micro_batch) const;

  StragglerModel model_;
  double factor_ = 1;
  std::uint64_t seed_;
  std::uint32_t rank_;
  std::vector<double> levels_;  // paper: [l - 1] = total weight of 1 .. l, as a share of all
  double level_mean_ = 1;
};

}  // namespace leeway::tools::train
