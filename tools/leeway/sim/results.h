// The outcomes of all runs, in the order that reports need, and the verdict on them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/cell_record.h"
#include "sim/runner.h"

namespace leeway::tools::simulation {

struct RunFailure {
  RunName run;
  Status status;
};

struct Results {
  std::vector<sim::CellRecord> cells;  // the whole grid; some cells may have no finished run
  std::size_t finished = 0;
  std::size_t runs = 0;              // runs of the plan
  std::vector<RunFailure> failures;  // runs that could not be made, in the plan's order
  std::size_t broken = 0;            // runs in which a checker found something
  std::optional<RunName> first_broken;

  bool complete() const { return finished + failures.size() == runs; }
  bool passed() const { return failures.empty() && broken == 0; }
};

Results collect(const Plan& plan, std::vector<Outcome> outcomes);

// Returns a line such as "checkers  all passed: i1 i2 i5; skipped: i13; do not apply: i9". If
// checkers failed, it says which ones, in how many runs.
std::string checkers_text(std::span<const sim::CellRecord> cells);

}  // namespace leeway::tools::simulation
