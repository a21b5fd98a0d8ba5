// Output of a command's runs: files of results, the table on stdout, failures on stderr.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/results.h"

namespace leeway::tools::simulation {

// Writes files unless something has failed before, and returns the first failure. Moves from the
// records of `results`. A shard has no results of its own, because its runs are already kept.
Status publish(const Job& job, Results& results, const Status& so_far);

// Checks that the path can be written to, so that an hour of runs does not end at a --json whose
// folder does not exist. Leaves the content of an existing file alone.
Status check_writable(const std::string& path);

}  // namespace leeway::tools::simulation
