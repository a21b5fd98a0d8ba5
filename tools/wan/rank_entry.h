// Turns a process into a rank: enters the rank's namespace, sets its environment, and starts its
// program.
//
// run_rank_processes() starts the laboratory's own executable with the program's command line. An
// environment variable tells this executable to be a rank.
#pragma once

#include <optional>
#include <vector>

#include "namespaces.h"

namespace leeway::lab {

struct RankEntry {
  std::vector<int> namespace_fds;  // by rank
  int output_fd = -1;              // standard output of all ranks; -1: only of rank 0
  int group = 0;                   // process group of all ranks
};

// Sets the environment variable for child processes, and keeps the descriptors open over exec().
void announce_ranks(const RankEntry& entry);

// Returns nullopt if this process is the laboratory. In a rank it returns only if the program
// cannot be started: the exit code.
std::optional<int> become_rank(char** argv);

}  // namespace leeway::lab
