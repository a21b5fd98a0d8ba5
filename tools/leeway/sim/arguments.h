// The arguments that a person typed after `leeway sim`, before they are checked.
#pragma once

#include <string>
#include <vector>

namespace leeway::tools::simulation {

struct Arguments {
  std::string file;
  std::string out;                    // folder for results; if empty, only the table is printed
  std::vector<std::string> settings;  // "field=value"
  bool full = false;                  // the scenario's long form
  std::string seeds;                  // "A..B"; if empty, the scenario's seeds
  std::string shard;                  // "I/N"; if empty, all runs
  unsigned jobs = 0;                  // 0: one for each core
  std::string json_path;              // "-": standard output
  std::string trace_path;
  bool trace_whole = false;  // keeps whole datagrams, not only their headers
  bool resume = false;
  bool overwrite = false;
  bool quiet = false;
};

}  // namespace leeway::tools::simulation
