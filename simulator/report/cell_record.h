// What the report room works on: finished runs, by cell of the scenario's grid.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run/run_record.h"
#include "scenario.pb.h"
#include "scenario/sweep.h"

namespace leeway::sim {

// One cell of the grid and its finished runs, one for each seed. Runs may stand in any order: every
// output goes by seed.
struct CellRecord {
  std::size_t index = 0;  // in the grid
  std::vector<scenario::Setting> settings;
  std::vector<RunRecord> runs;
};

struct ReportInput {
  std::string scenario_text;  // the file, as written
  scenario::Scenario scenario;
  std::vector<CellRecord> cells;  // in any order: every output goes by index
  std::string command;            // repeats one run
  std::string version;            // of Leeway
  bool complete = true;           // false: stopped before all runs were done
  std::string failure;            // how many runs could not be made, and why; empty: none
};

}  // namespace leeway::sim
