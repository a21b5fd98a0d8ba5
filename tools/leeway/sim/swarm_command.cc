#include "sim/swarm_command.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "adversary/adversary.h"
#include "exit_code.h"
#include "interrupt.h"
#include "sim/plan.h"
#include "sim/progress.h"
#include "sim/repeat_command.h"
#include "sim/runner.h"
#include "sim/shard.h"
#include "sim/swarm_outcome.h"
#include "swarm/draw.h"
#include "swarm/shrink.h"
#include "swarm/swarm.h"
#include "text_file.h"

namespace leeway::tools::simulation {
namespace {

// Limit on the runs with which a failing scenario is made smaller.
constexpr unsigned kShrinkTries = 1000;

namespace swarm = sim::swarm;
using sim::scenario::Scenario;
using Clock = std::chrono::steady_clock;

struct SwarmArguments {
  std::string seeds;
  std::string shard;
  unsigned jobs = 0;
  std::string json_path;
  bool keep_going = false;
  bool show = false;
  bool adversary = false;
  bool quiet = false;
};

// A handler of SIGABRT: a failed assertion of the library ends the process, so this prints the
// seed.
void tell_seed(int) {
  char text[64] = "while judging seed ";
  const std::size_t length = std::strlen(text);
  const auto end = std::to_chars(text + length, text + sizeof(text) - 1, swarm::current_seed()).ptr;
  *end = '\n';
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(end + 1 - text)) < 0) return;
}

// The file with the reduced scenario, and the command that repeats the failure.
struct Repeat {
  std::string file;
  std::string command;
};

Repeat repeat_of(const swarm::SeedFailure& failed, bool adversary) {
  const std::string seed = std::to_string(failed.seed);
  const std::string seeds = " --seeds " + seed + ".." + seed;
  if (adversary) return {"", "leeway sim swarm --adversary" + seeds};
  // Check i12 fails if two runs of one seed differ. No smaller scenario is made for that.
  if (failed.failure.check == "i12") return {"", "leeway sim swarm" + seeds};
  const std::string file = "swarm-" + seed + ".txtpb";
  return {file, "leeway sim " + file + seeds};
}

Scenario smaller(const swarm::SeedFailure& failed, const std::atomic<bool>& stop) {
  const bool liveness = failed.failure.check == "i9";
  const swarm::Fails fails = [&](const Scenario& scenario) {
    if (liveness && !swarm::promises_recovery(scenario)) return false;
    const swarm::Verdict verdict = swarm::judge(scenario, failed.seed, {.stop = &stop});
    return verdict.failure && verdict.failure->check == failed.failure.check;
  };
  return swarm::shrink(swarm::draw_scenario(failed.seed), fails, kShrinkTries);
}

Status tell_failure(const swarm::SeedFailure& failed, bool adversary,
                    const std::atomic<bool>& stop) {
  std::fprintf(stderr, "seed %llu: %s: %s\n", static_cast<unsigned long long>(failed.seed),
               failed.failure.check.c_str(), failed.failure.text.c_str());
  const Repeat repeat = repeat_of(failed, adversary);
  Status status;
  if (!repeat.file.empty()) {
    status = write_text(repeat.file, scenario_text(smaller(failed, stop)));
    if (!status.ok()) return status;
  }
  std::fprintf(stderr, "  repeat it: %s\n", repeat.command.c_str());
  return status;
}

int show_scenarios(const Seeds& seeds) {
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.from + i;
    std::printf("# seed %llu\n%s", static_cast<unsigned long long>(seed),
                scenario_text(swarm::draw_scenario(seed)).c_str());
  }
  return 0;
}

swarm::Tally search(const SwarmArguments& arguments, const Seeds& seeds, const Shard& shard,
                    const std::atomic<bool>& stop) {
  swarm::SwarmOptions options;
  options.from = seeds.from + shard.place(0);
  options.count = shard.share(seeds.count);
  options.every = shard.of;
  options.jobs = jobs_for(arguments.jobs, options.count);
  ProgressDisplay display(arguments.quiet ? nullptr : stderr, options.count, 0);
  options.keep_going = arguments.keep_going;
  options.stop = &stop;
  if (arguments.adversary) options.judge = sim::adversary::judge;
  options.progress = [&](const swarm::Tally&) { display.on_finished(); };
  const auto previous = std::signal(SIGABRT, tell_seed);
  swarm::Tally tally = swarm::run_swarm(options);
  std::signal(SIGABRT, previous);
  display.erase();
  return tally;
}

int swarm_command(const SwarmArguments& arguments) {
  const Result<Seeds> seeds = parse_seeds(arguments.seeds);
  if (!seeds.ok()) return complain(seeds.status(), kExitUsage);
  const Result<Shard> shard = parse_shard(arguments.shard);
  if (!shard.ok()) return complain(shard.status(), kExitUsage);
  if (arguments.show) return show_scenarios(*seeds);
  InterruptGuard interrupt;
  const Clock::time_point begin = Clock::now();
  SwarmOutcome outcome{*seeds, *shard, search(arguments, *seeds, *shard, interrupt.flag()), 0};
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (arguments.json_path != "-") print_outcome(outcome);
  Status status;
  if (!arguments.json_path.empty()) status = write_text(arguments.json_path, outcome_json(outcome));
  const auto& failures = outcome.tally.failures;
  if (status.ok() && !failures.empty() && interrupt.exit_code() == 0)
    status = tell_failure(failures.front(), arguments.adversary, interrupt.flag());
  if (!status.ok()) return complain(status, kExitFailed);
  if (interrupt.exit_code() != 0) return interrupt.exit_code();
  return failures.empty() ? 0 : kExitFailed;
}

}  // namespace

void add_swarm_command(CLI::App& sim, int& exit_code) {
  CLI::App* const command =
      sim.add_subcommand("swarm", "Search for faults: a drawn scenario a seed, all invariants");
  const auto a = std::make_shared<SwarmArguments>();
  command->add_option("--seeds", a->seeds, "A..B")->required();
  command->add_option("--jobs", a->jobs, "Runs at a time (default: one a core)")
      ->check(CLI::Range(1, 4096));
  add_shard_option(*command, a->shard);
  command->add_option("--json", a->json_path,
                      "Also write the outcome to this file (- for standard output only)");
  command->add_flag("--keep-going", a->keep_going, "All seeds, not only up to the first failure");
  command->add_flag("--adversary", a->adversary,
                    "In place of drawn scenarios: people tamper with a job's store and network");
  command->add_flag("--show", a->show, "Print the scenarios of the seeds and run nothing")
      ->excludes("--adversary");
  command->add_flag("--quiet", a->quiet, "No progress line");
  command->callback([a, &exit_code] {
    const Status status = default_to_launcher(a->shard);
    exit_code = status.ok() ? swarm_command(*a) : complain(status, kExitUsage);
  });
}

}  // namespace leeway::tools::simulation
