// Starts one process for each rank, and looks after them until all have ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::tools {

// A variable in every rank's environment: the process id of its launcher.
inline constexpr const char* kLauncherVariable = "LEEWAY_LAUNCHER_PID";

// Returns another id at each call.
std::string random_run_id();

struct RankCommand {
  std::string program;  // path
  std::vector<std::string> argv;
  int ranks = 1;
  std::string rendezvous;  // LEEWAY_RENDEZVOUS of all
  // LEEWAY_RUN_ID of all ranks, unless it is set already. It keeps out ranks that an earlier start
  // left at this rendezvous.
  std::string run_id = random_run_id();

  // Time from the first failure until the other ranks get SIGTERM. They may be writing reports
  // about it.
  Duration grace = std::chrono::seconds(10);
  // From SIGTERM until SIGKILL.
  Duration patience = std::chrono::seconds(2);
};

// Runs the ranks to their end. Returns 0 when all returned 0; otherwise the code of the first that
// failed (128 + n when killed by signal n), having named it on stderr. The later ones usually fail
// because of it. SIGINT and SIGTERM that arrive meanwhile are passed on, count as a failure of the
// whole, and give 128 + n.
//
// Ranks inherit everything except the following: LEEWAY_RANK, LEEWAY_WORLD_SIZE, LEEWAY_LOCAL_RANK,
// LEEWAY_RENDEZVOUS and kLauncherVariable are set; OMP_NUM_THREADS (a fair share of the cores) and
// LEEWAY_RUN_ID are set unless they are there; all ranks but 0 have /dev/null as standard input and
// output. The system kills them when the calling thread ends, whatever ended it. Must be called
// from the only thread that handles signals.
Result<int> run_rank_processes(const RankCommand& command);

}  // namespace leeway::tools
