// Output of a command's runs: files of results, the table on stdout, failures on stderr.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/results.h"

namespace leeway::tools::simulation {

// Writes the files of results, unless `so_far` is an error, and returns the first error. Moves
// records out of `results`. A shard writes none of these files, because its runs are already
// written.
Status publish(const Job& job, Results& results, const Status& so_far);

}  // namespace leeway::tools::simulation
