// Runs the present command as several local processes, for `leeway train --ranks N` and `leeway
// perf --ranks N`.
//
// Each process is this executable with the same command line. It gets its rank by LEEWAY_RANK,
// LEEWAY_WORLD_SIZE and LEEWAY_RENDEZVOUS (loopback, a free port). The caller's code begins with:
//
//   const auto launched = launch_local_ranks(ranks);
//   if (!launched.ok()) ...;
//   if (!launched->is_worker) return launched->exit_code;   // the parent, after its children's end
//   ... Options::from_environment(), Communicator::create() ...
#pragma once

#include "leeway/status.h"

namespace leeway::tools {

struct LaunchResult {
  bool is_worker = false;  // true: this process is a rank, and goes on to join the group
  int exit_code = 0;  // in the parent: 0, or the first failing rank's code (128 + n for signal n)
};

// Starts `ranks` processes and returns when all have ended. Starts none and returns is_worker if
// this process has a launcher (torchrun, Open MPI, PMI, Slurm, LEEWAY_RANK), or if `ranks` is 1.
// Under a launcher `ranks` must be 0 ("not asked for") or the launcher's world size.
//
// Passes SIGINT, SIGTERM and SIGHUP on to the processes. If one rank fails, the others get some
// time to report, and are then terminated. The name of the failed rank goes to stderr. The standard
// output of all ranks but 0 goes to /dev/null.
Result<LaunchResult> launch_local_ranks(int ranks);

// Returns true if launch_local_ranks() started this process.
bool is_started_by_launcher();

}  // namespace leeway::tools
