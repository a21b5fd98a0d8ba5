// The step between the laboratory and a rank's program: the process goes into its namespace, gets
// its environment and becomes the program.
//
// run_rank_processes() starts the laboratory's own executable with the program's command line; an
// environment variable tells it that it is to be a rank.
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

// Prepares for the children: sets the variable, and keeps the descriptors open over exec.
void announce_ranks(const RankEntry& entry);

// Returns nullopt if this process is the laboratory. Otherwise it does not return, except with an
// exit code if the program could not be started.
std::optional<int> become_rank(char** argv);

}  // namespace leeway::lab
