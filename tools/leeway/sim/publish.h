// Output of a command's runs: files of results, the table on stdout, failures on stderr.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/results.h"

namespace leeway::tools::simulation {

// Writes files unless something has failed before, and returns the first failure. Moves from the
// records of `results`. A shard has no results of its own, because its runs are already kept.
Status publish(const Job& job, Results& results, const Status& so_far);

}  // namespace leeway::tools::simulation
