// Starts one process for each rank, and waits until all have ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::tools {

// A variable in every rank's environment: the process id of its launcher.
inline constexpr const char* kLauncherVariable = "LEEWAY_LAUNCHER_PID";

// Returns a different id at each call.
std::string random_run_id();

struct RankCommand {
  std::string program;  // path
  std::vector<std::string> argv;
  int ranks = 1;
  std::string rendezvous;  // LEEWAY_RENDEZVOUS of all
  // LEEWAY_RUN_ID of all ranks, unless the variable is set already. The id differs in each start,
  // so ranks left over from an earlier start cannot join at this rendezvous.
  std::string run_id = random_run_id();

  // Time from the first failure until the other ranks get SIGTERM. In this time they may report the
  // failure.
  Duration grace = std::chrono::seconds(10);
  // Time from SIGTERM until SIGKILL.
  Duration patience = std::chrono::seconds(2);
};

// Runs the ranks to their end. Returns 0 if all ranks returned 0. Otherwise returns the exit code
// of the first rank that failed (128 + n if signal n killed it), and names the rank on stderr;
// later failures are usually consequences. SIGINT, SIGTERM and SIGHUP are passed on to the ranks,
// unless they are ignored; the result is then 128 + n.
//
// Ranks inherit the environment, with these changes: LEEWAY_RANK, LEEWAY_WORLD_SIZE,
// LEEWAY_LOCAL_RANK, LEEWAY_RENDEZVOUS and kLauncherVariable are set; OMP_NUM_THREADS (a fair share
// of the cores) and LEEWAY_RUN_ID are set unless they exist. All ranks but 0 have /dev/null as
// standard input and output. The kernel kills the ranks when the calling thread ends for any
// reason. The calling thread must be the only one that handles the process's signals.
Result<int> run_rank_processes(const RankCommand& command);

}  // namespace leeway::tools
