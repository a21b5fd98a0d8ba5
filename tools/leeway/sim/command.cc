#include "sim/command.h"

#include <cstdio>
#include <string>
#include <utility>

#include "exit_code.h"
#include "interrupt.h"
#include "report/report.h"
#include "report/run_json.h"
#include "sim/progress.h"
#include "sim/publish.h"
#include "sim/repeat_command.h"
#include "text_file.h"

namespace leeway::tools::simulation {
namespace {

class Watcher : public RunnerObserver {
 public:
  Watcher(const Job& job, std::size_t runs_kept)
      : job_(job), display_(job.arguments.quiet ? nullptr : stderr, job.plan.runs(), runs_kept) {}

  void on_forecast(const Forecast& forecast, unsigned jobs) override {
    std::string text = forecast_text(job_.plan, forecast, jobs);
    if (text.empty()) return;
    if (job_.plan.scenario.full_size() > 0) text += "; --full takes longer";
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  void on_round(std::uint32_t rounds_done, std::uint32_t rounds) override {
    display_.on_round(rounds_done, rounds);
  }

  // Checks the measures of the plots after the first run, so that a mistake is found before all
  // other runs.
  Status on_finished(const RunName& run, const sim::RunRecord& record) override {
    display_.on_finished();
    if (!plots_checked_) {
      plots_checked_ = true;
      const Status plots = sim::check_plots(job_.plan.scenario, record);
      if (!plots.ok()) return plots;
    }
    return job_.folder ? job_.folder->write_run(run, sim::run_json(record)) : Status();
  }

  void erase() { display_.erase(); }

 private:
  const Job& job_;
  ProgressDisplay display_;
  bool plots_checked_ = false;
};

Existing existing_of(const Arguments& arguments, const Shard& shard) {
  if (arguments.overwrite) return Existing::overwrite;
  if (!shard.whole()) return Existing::share;
  return arguments.resume ? Existing::resume : Existing::refuse;
}

Status check_arguments(const Arguments& arguments) {
  const auto refuse = [](const char* why) {
    return Status::error(StatusCode::kInvalidArgument, "%s", why);
  };
  if (arguments.file.empty()) return refuse("leeway sim needs a scenario: leeway sim FILE");
  if (arguments.resume && arguments.overwrite)
    return refuse("--resume and --overwrite exclude each other");
  if (arguments.out.empty() && (arguments.resume || arguments.overwrite)) {
    return refuse("--resume and --overwrite need the folder of the results: --out DIR");
  }
  const Result<Shard> shard = parse_shard(arguments.shard);
  if (!shard.ok()) return shard.status();
  if (shard->whole()) return {};
  if (arguments.out.empty()) return refuse("a shard keeps its runs in a folder: add --out DIR");
  if (arguments.overwrite)
    return refuse("--overwrite would take other shards' runs: empty the folder of --out first");
  if (!arguments.json_path.empty())
    return refuse("--json is of all runs: name it to `leeway sim merge`");
  if (!arguments.trace_path.empty()) return refuse("--trace holds one run: leave out --shard");
  return {};
}

// Refuses a folder that already holds runs of this job's shard. Runs of other shards may be there,
// because the processes of all shards share the folder.
Status refuse_own_runs(const Job& job) {
  if (job.plan.shard.whole() || job.arguments.resume) return {};
  for (std::size_t i = 0; i < job.plan.runs(); ++i) {
    const auto run = job.folder->read_run(job.plan.run(i));
    if (run.ok() && !*run) continue;
    return Status::error(StatusCode::kInvalidArgument,
                         "%s holds runs of %s; add --resume to keep them, or name another folder",
                         job.arguments.out.c_str(), to_string(job.plan.shard).c_str());
  }
  return {};
}

Status open_folder(Job& job) {
  const auto folder =
      OutputFolder::open(job.arguments.out, job.text, existing_of(job.arguments, job.plan.shard));
  if (!folder.ok()) return folder.status();
  job.folder = *folder;
  const Status own = refuse_own_runs(job);
  if (!own.ok()) return own;
  return job.folder->write(kArgumentsFile, arguments_json(job.arguments));
}

Result<Job> prepare(const Arguments& arguments) {
  const Status sound = check_arguments(arguments);
  if (!sound.ok()) return sound;
  Result<Plan> plan = make_plan(arguments);
  if (!plan.ok()) return plan.status();
  Job job{arguments, std::move(*plan), {}, {}, {}};
  job.text = scenario_text(job.plan.scenario);
  Status status = PacketTrace::check(arguments, job.plan);
  if (status.ok()) status = check_writable(arguments.json_path);
  if (!status.ok()) return status;
  if (!arguments.out.empty()) status = open_folder(job);
  if (status.ok() && !arguments.trace_path.empty()) status = job.trace.open(arguments, job.plan);
  if (!status.ok()) return status;
  return job;
}

// Loads the runs that an earlier command finished. Returns their number. A run whose file is
// damaged is run again.
Result<std::size_t> load_finished(const Job& job, std::vector<Outcome>& outcomes) {
  std::size_t kept = 0;
  if (!job.folder || !job.arguments.resume) return kept;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const RunName name = job.plan.run(i);
    const auto text = job.folder->read_run(name);
    if (!text.ok()) return text.status();
    if (!*text) continue;
    auto record = sim::parse_run_json(**text);
    if (!record.ok() || record->seed != name.seed) continue;
    outcomes[i].record = std::move(*record);
    ++kept;
  }
  return kept;
}

void print_incomplete(const Job& job, const Results& results) {
  if (results.complete()) return;
  std::fprintf(stderr, "stopped after %zu of %zu runs\n", results.finished, results.runs);
  if (job.folder) std::fprintf(stderr, "  continue: %s\n", resume_command(job.arguments).c_str());
}

}  // namespace

int run_command(const Arguments& arguments, const RunFunction& run,
                const sim::WorkloadFactory& workload) {
  Result<Job> job = prepare(arguments);
  if (!job.ok()) return complain(job.status(), kExitUsage);
  std::vector<Outcome> outcomes(job->plan.runs());
  const Result<std::size_t> kept = load_finished(*job, outcomes);
  if (!kept.ok()) return complain(kept.status(), kExitFailed);

  InterruptGuard interrupt;
  RunnerOptions options;
  options.run = run;
  options.jobs = arguments.jobs;
  options.forecast = !arguments.quiet && !job->trace.active();
  options.stop = &interrupt.flag();
  options.run_options.workload = workload;
  options.run_options.packets = job->trace.observer();
  Watcher watcher(*job, *kept);
  Status status = run_all(job->plan, options, outcomes, watcher);
  watcher.erase();

  const Status traced = job->trace.close();
  if (status.ok()) status = traced;
  if (status.code() == StatusCode::kInvalidArgument) return complain(status, kExitUsage);

  Results results = collect(job->plan, std::move(outcomes));
  status = publish(*job, results, status);
  print_incomplete(*job, results);
  if (!status.ok()) return complain(status, kExitFailed);
  if (interrupt.exit_code() != 0) return interrupt.exit_code();
  return results.passed() ? 0 : kExitFailed;
}

}  // namespace leeway::tools::simulation
