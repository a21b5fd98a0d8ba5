// The input of reports: finished runs, by cell of the scenario's grid.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run/run_record.h"
#include "scenario.pb.h"
#include "scenario/sweep.h"

namespace leeway::sim {

// One cell of the grid and its finished runs, one for each seed, in any order. Outputs sort them by
// seed.
struct CellRecord {
  std::size_t index = 0;  // in the grid
  std::vector<scenario::Setting> settings;
  std::vector<RunRecord> runs;
};

struct ReportInput {
  std::string scenario_text;  // the file, as written
  scenario::Scenario scenario;
  std::vector<CellRecord> cells;  // in any order: every output goes by index
  std::string command;            // the command that repeats one run
  std::string version;            // version of Leeway
  bool complete = true;           // false if it was stopped before all runs were done
  std::string failure;            // number of runs that could not be made, and the reason, if any
};

}  // namespace leeway::sim
