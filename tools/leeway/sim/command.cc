#include "sim/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "exit_code.h"
#include "leeway/version.h"
#include "report/report.h"
#include "report/run_json.h"
#include "sim/interrupt.h"
#include "sim/output_folder.h"
#include "sim/packet_trace.h"
#include "sim/progress.h"
#include "sim/repeat_command.h"
#include "sim/result_table.h"
#include "sim/results.h"
#include "text_file.h"

namespace leeway::tools::simulation {
namespace {

// What a command works with once nothing more can be wrong with its arguments.
struct Job {
  const Arguments& arguments;
  Plan plan;
  std::string text;                    // scenario.txtpb
  std::optional<OutputFolder> folder;  // none: table only
  PacketTrace trace;
};

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

  // A plot of something that no run measures is found out after the first run, not after the last.
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

Existing existing_of(const Arguments& arguments) {
  if (arguments.overwrite) return Existing::overwrite;
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
  return {};
}

// An hour of runs must not end at a folder that does not exist. Leaves the content of an existing
// file alone.
Status check_writable(const std::string& path) {
  if (path.empty() || path == "-") return {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "a"),
                                                             std::fclose);
  if (file) return {};
  return Status::error(StatusCode::kInvalidArgument, "--json %s: %s", path.c_str(),
                       std::strerror(errno));
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
  if (!arguments.out.empty()) {
    const auto folder = OutputFolder::open(arguments.out, job.text, existing_of(arguments));
    if (!folder.ok()) return folder.status();
    job.folder = *folder;
  }
  if (!arguments.trace_path.empty()) status = job.trace.open(arguments, job.plan);
  if (!status.ok()) return status;
  return job;
}

// Finished runs of an earlier command. A file that is not one of ours means that the run is made
// again.
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

// Takes the cells: records of many runs are large.
sim::ReportInput report_input(const Job& job, Results& results) {
  const RunName first = results.first_broken.value_or(job.plan.run(0));
  sim::ReportInput input;
  input.scenario_text = job.text;
  input.scenario = job.plan.scenario;
  input.cells = std::move(results.cells);
  input.command = repeat_command(job.arguments, job.plan, first);
  input.version = LEEWAY_VERSION_STRING;
  input.complete = results.complete();
  return input;
}

Status write_results(const Job& job, const sim::ReportInput& input) {
  Status status;
  if (job.folder) {
    const OutputFolder& folder = *job.folder;
    status = folder.write("rounds.csv", sim::rounds_csv(input.cells));
    if (status.ok()) status = folder.write("links.csv", sim::links_csv(input.cells));
    if (status.ok()) status = folder.write("report.html", sim::report_html(input));
    if (status.ok()) status = folder.write("summary.json", sim::summary_json(input));
  }
  if (status.ok() && !job.arguments.json_path.empty()) {
    status = write_text(job.arguments.json_path, sim::summary_json(input));
  }
  return status;
}

void print_results(const Job& job, std::span<const sim::CellRecord> cells) {
  if (job.arguments.json_path == "-") return;
  std::fputs(result_table(job.plan.scenario, cells).c_str(), stdout);
  std::fputs(checkers_text(cells).c_str(), stdout);
  std::printf("trace     %s\n", sim::hash_text(sim::trace_hash_of(cells)).c_str());
  if (job.folder) std::printf("report    %s\n", job.folder->path("report.html").c_str());
  if (job.trace.active()) std::printf("packets   %s\n", job.arguments.trace_path.c_str());
}

// What was wrong with the first run of each kind, and how to see it again.
void print_failures(const Job& job, const Results& results,
                    std::span<const sim::CellRecord> cells) {
  const auto print = [&job](const char* title, const RunName& run, const std::string& what) {
    const auto& settings = job.plan.grid[run.cell].settings;
    std::fprintf(stderr, "%s: seed %llu%s%s: %s\n  repeat it: %s\n", title,
                 static_cast<unsigned long long>(run.seed), settings.empty() ? "" : ", ",
                 sim::scenario::to_string(settings).c_str(), what.c_str(),
                 repeat_command(job.arguments, job.plan, run).c_str());
  };
  if (!results.failures.empty()) {
    const std::string title = std::to_string(results.failures.size()) + " of " +
                              std::to_string(results.runs) + " runs could not be made";
    print(title.c_str(), results.failures.front().run, results.failures.front().status.c_str());
  }
  if (!results.first_broken) return;
  const RunName broken = *results.first_broken;
  for (const sim::RunRecord& run : cells[broken.cell].runs) {
    for (const sim::CheckRecord& check : run.checks) {
      if (run.seed != broken.seed || check.verdict != sim::Verdict::failed) continue;
      const std::string title = "checker " + check.id + " failed (" + check.title + ")";
      return print(title.c_str(), broken, check.first_failure);
    }
  }
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
  const sim::ReportInput input = report_input(*job, results);
  if (status.ok()) status = write_results(*job, input);
  print_results(*job, input.cells);
  print_failures(*job, results, input.cells);
  print_incomplete(*job, results);
  if (!status.ok()) return complain(status, kExitFailed);
  if (interrupt.exit_code() != 0) return interrupt.exit_code();
  return results.passed() ? 0 : kExitFailed;
}

}  // namespace leeway::tools::simulation
