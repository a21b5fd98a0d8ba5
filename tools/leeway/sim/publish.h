// Output of a command's runs: files of results, the table on stdout, failures on stderr.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/results.h"

namespace leeway::tools::simulation {

// Files are written unless something has failed before; the first failure is returned. The records
// of `results` are moved from. A shard has no results of its own: its runs are kept already.
Status publish(const Job& job, Results& results, const Status& so_far);

// An hour of runs must not end at a --json whose folder does not exist. Leaves the content of an
// existing file alone.
Status check_writable(const std::string& path);

}  // namespace leeway::tools::simulation
