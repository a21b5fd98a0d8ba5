// Runs `leeway sim FILE`, from arguments to exit code.
//
//   0    every run was made and all checkers passed
//   1    a run could not be made, a checker failed, or results could not be written
//   2    wrong usage, a wrong scenario, a folder that cannot be used: nothing was run
//   130  interrupted; what had finished is kept (143 after SIGTERM)
#pragma once

#include "sim/arguments.h"
#include "sim/runner.h"

namespace leeway::tools::simulation {

// Runs the command. `run` is sim::run, or a substitute in tests. Results go to stdout, errors and
// progress to stderr.
int run_command(const Arguments& arguments, const RunFunction& run,
                const sim::WorkloadFactory& workload);

}  // namespace leeway::tools::simulation
