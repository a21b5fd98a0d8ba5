// I2, I3, I4 and I6 of whole calls by sites (collective/hierarchical_call.h) or over lanes
// (collective/sliced_call.h). The checkers of their own communicators check the legs or slices.
//
//   I2  an exact reduction differs from the loss-free average by rounding only
//   I3  an exact call that succeeded lacks nothing; `complete` is reported only if nothing is
//       missing
//   I4  a call returns by its deadline plus a tick for each leg that may begin after another leg
//   I6  ranks that must agree hold the same bits; after an all_gather, the contributions' bits
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "checker/check.h"
#include "checker/deadlines.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class SiteCheck {
 public:
  struct Checks {
    Check& sum;        // I2
    Check& report;     // I3
    Check& deadline;   // I4
    Check& agreement;  // I6
  };
  // `sites`: number of sites, or 0 for calls over lanes.
  SiteCheck(Checks checks, std::uint32_t ranks, std::uint32_t sites);

  void on_submit(Instant now, std::uint32_t rank, const Call& call);
  void on_done(Instant now, std::uint32_t rank, const Call& call, const CallResult& result);
  void on_pause(Instant now, std::uint32_t rank) { deadlines_.on_pause(now, rank); }
  void on_resume(Instant now, std::uint32_t rank) { deadlines_.on_resume(now, rank); }
  void on_death(std::uint32_t rank);
  void finish(Instant now) { deadlines_.finish(now); }

 private:
  // The call of one round.
  struct Round {
    // Contributions by rank; empty for a rank that has not submitted.
    std::vector<std::vector<float>> brought;
    std::vector<double> weights;
    std::vector<double> mean;             // mean of the contributions, computed when first needed
    double largest = 0.0;                 // mean magnitude of its elements, the largest over ranks
    std::optional<std::uint32_t> digest;  // digest of the agreed result
    std::uint32_t digest_of = 0;          // the first rank that had the agreed result
  };

  bool has_all(const Round& round) const;
  void average(Round& round) const;
  void check_sum(Instant now, std::uint32_t rank, const Call& call, Round& round);
  void check_blocks(Instant now, std::uint32_t rank, const Call& call, const Round& round);
  void check_agreement(Instant now, std::uint32_t rank, const Call& call, Round& round);
  void drop_finished();

  Checks checks_;
  const std::uint32_t sites_;
  Deadlines deadlines_;
  std::vector<bool> dead_;           // by rank
  std::vector<std::uint32_t> next_;  // by rank: the first round that the rank has not finished
  std::map<std::uint32_t, Round> rounds_;
};

}  // namespace leeway::sim
