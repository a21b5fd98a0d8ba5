// Measures one operation at one size: checks the results, then times it.
//
// Checked calls come first, into poisoned buffers. A timed iteration starts at a barrier (not
// timed) and lasts as long as the slowest rank's call; ranks exchange their times once, after the
// last iteration. Back to back, an iteration is a batch of calls, and its time is divided by their
// number. That leaves out the skew with which ranks leave a barrier, and includes work that a call
// leaves for the next one. In place, calls would sum their own results, so only the other half is
// measured.
#pragma once

#include "leeway/communicator.h"
#include "perf/settings.h"
#include "perf/table.h"

namespace leeway::tools::perf {

// All ranks call this together, and get the same row.
Result<Row> measure(Communicator& communicator, const Settings& settings, std::size_t bytes);

}  // namespace leeway::tools::perf
