// Running one command as several local processes, for `leeway train --ranks N` and `leeway perf
// --ranks N`.
//
// Each process is this executable with this command line again, told its place by LEEWAY_RANK,
// LEEWAY_WORLD_SIZE and LEEWAY_RENDEZVOUS (loopback, a free port). The caller asks once, at its
// start:
//
//   const auto launched = launch_local_ranks(ranks);
//   if (!launched.ok()) ...;
//   if (!launched->is_worker) return launched->exit_code;   // the parent: its children have done
//   the work
//   ... Options::from_environment(), Communicator::create() ...
#pragma once

#include "leeway/status.h"

namespace leeway::tools {

struct LaunchResult {
  bool is_worker = false;  // true: this process is a rank, and goes on to join the group
  int exit_code = 0;  // in the parent: 0, or the first failing rank's code (128 + n for signal n)
};

// Under a launcher (torchrun, Open MPI, PMI, Slurm, LEEWAY_RANK) or with ranks == 1 nothing is
// started and the answer is "worker". Under a launcher `ranks` must be 0 ("not asked for") or the
// launcher's world size. Otherwise starts `ranks` processes and returns when all have ended. SIGINT
// and SIGTERM are passed on; when one rank fails, the others get a grace time to report and are
// then terminated; stderr names the rank that failed. All ranks but 0 have their standard output
// sent to /dev/null.
Result<LaunchResult> launch_local_ranks(int ranks);

// Returns true if launch_local_ranks() of the parent started this process.
bool is_started_by_launcher();

}  // namespace leeway::tools
