// The outcome of a search over seeds or of a shard of it: text for people, JSON for programs and
// for `leeway sim merge`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "leeway/status.h"
#include "sim/plan.h"
#include "swarm/swarm.h"

namespace leeway::tools::simulation {

struct SwarmOutcome {
  Seeds seeds;  // the seeds of all shards
  Shard shard;
  sim::swarm::Tally tally;
  double seconds = 0;
};

void print_outcome(const SwarmOutcome& outcome);

std::string outcome_json(const SwarmOutcome& outcome);

// Returns kInvalidArgument for any text that outcome_json() did not write.
Result<SwarmOutcome> parse_outcome(std::string_view text);

// Merges the outcomes of all shards, in any order. Returns kInvalidArgument if a shard is missing,
// occurs twice, or has other seeds; the text takes the part's name from `names`. The result equals
// that of one search over all seeds, except that `seconds` is the sum.
Result<SwarmOutcome> merge_outcomes(std::span<const SwarmOutcome> parts,
                                    std::span<const std::string> names);

}  // namespace leeway::tools::simulation
