// The arguments that a person typed after `leeway sim`, not yet understood.
#pragma once

#include <string>
#include <vector>

namespace leeway::tools::simulation {

struct Arguments {
  std::string file;
  std::string out;                    // folder; without one, table only
  std::vector<std::string> settings;  // "field=value"
  bool full = false;                  // the scenario's long form
  std::string seeds;                  // "A..B"; without it, the scenario's
  std::string shard;                  // "I/N"; without it, all runs
  unsigned jobs = 0;                  // with 0, one a core
  std::string json_path;              // "-": standard output
  std::string trace_path;
  bool trace_whole = false;  // datagrams as long as they are, not their headers only
  bool resume = false;
  bool overwrite = false;
  bool quiet = false;
};

}  // namespace leeway::tools::simulation
