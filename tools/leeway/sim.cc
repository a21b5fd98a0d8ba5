// leeway sim: runs a scenario in virtual time, and shows how training would go on such a network.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "commands.h"
#include "exit_code.h"
#include "run/run.h"
#include "sim/arguments.h"
#include "sim/command.h"
#include "sim/merge_command.h"
#include "sim/shard.h"
#include "sim/swarm_command.h"
#include "sim/trace_command.h"
#ifdef LEEWAY_SIM_GPT
#include "sim/gpt_workload.h"
#include "train/model.h"
#endif

namespace leeway::tools {
namespace {

sim::WorkloadFactory workload_factory() {
#ifdef LEEWAY_SIM_GPT
  train::use_one_compute_thread();  // runs go side by side, each on a thread of its own
  return simulation::make_workload_with_gpt;
#else
  return sim::make_workload;
#endif
}

void add_options(CLI::App& command, simulation::Arguments& a) {
  command.add_option("FILE", a.file, "The scenario: *.txtpb, see simulator/scenario/README.md");
  command.add_option("--out", a.out, "Folder for results and report (default: table only)");
  command
      .add_option("--set", a.settings,
                  "Change a field, e.g. ranks=32 or link[0].loss.random.p=0.01; may be repeated")
      ->expected(1)
      ->take_all();
  command.add_flag("--full", a.full, "The scenario's long form: more seeds, rounds or values");
  command.add_option("--seeds", a.seeds, "A..B: run each cell with these instead");
  simulation::add_shard_option(command, a.shard);
  command.add_option("--jobs", a.jobs, "Runs at a time (default: one a core)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--json", a.json_path,
                     "Also write summary.json to this file (- for standard output only)");
  command.add_flag("--resume", a.resume, "Keep the finished runs that --out holds");
  command.add_flag("--overwrite", a.overwrite, "Replace the results that --out holds");
  command.add_option("--trace", a.trace_path, "Write every packet of a single run to this file");
  command.add_flag("--trace-whole", a.trace_whole, "Whole datagrams in it, not headers alone");
  command.add_flag("--quiet", a.quiet, "No expected time and no progress line");
}

}  // namespace

void register_sim(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("sim", "Run a scenario in virtual time, over all its sweeps and seeds");
  const auto arguments = std::make_shared<simulation::Arguments>();
  add_options(*command, *arguments);
  command->require_subcommand(0, 1);
  CLI::App* const trace = command->add_subcommand("trace", "Look at packet traces");
  trace->require_subcommand(1);
  simulation::add_trace_commands(*trace, exit_code);
  simulation::add_swarm_command(*command, exit_code);
  simulation::add_merge_command(*command, exit_code);
  command->callback([command, arguments, &exit_code] {
    if (!command->get_subcommands().empty()) return;
    const Status status = simulation::default_to_launcher(arguments->shard);
    exit_code = status.ok() ? simulation::run_command(*arguments, sim::run, workload_factory())
                            : complain(status, kExitUsage);
  });
}

}  // namespace leeway::tools
