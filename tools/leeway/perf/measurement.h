// Measures one operation at one size: checks the results, then times it.
//
// Checked calls come first, with outputs that are filled with values no result has. A timed
// iteration begins after a barrier, which is not timed, and takes as long as the slowest rank's
// call. Ranks exchange their times once, after the last iteration. With calls back to back, an
// iteration is a batch of calls, and its time is divided by their number. Such a time hardly
// contains the differences in time with which ranks leave the barrier, and includes work that a
// call leaves to the next one. Batches are timed out of place only, because calls in place would
// sum up their own results.
#pragma once

#include "leeway/communicator.h"
#include "perf/settings.h"
#include "perf/table.h"

namespace leeway::tools::perf {

// All ranks call this together, and get the same row.
Result<Row> measure(Communicator& communicator, const Settings& settings, std::size_t bytes);

}  // namespace leeway::tools::perf
