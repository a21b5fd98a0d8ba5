#include "sim/publish.h"

#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>

#include "leeway/version.h"
#include "report/report.h"
#include "sim/repeat_command.h"
#include "sim/result_table.h"
#include "standard_output.h"
#include "text_file.h"

namespace leeway::tools::simulation {
namespace {

std::string failures_title(const Results& results) {
  return std::to_string(results.failures.size()) + " of " + std::to_string(results.runs) +
         " runs could not be made";
}

std::string failure_text(const Job& job, const RunName& run, const std::string& what) {
  const auto& settings = job.plan.grid[run.cell].settings;
  return "seed " + std::to_string(run.seed) + (settings.empty() ? "" : ", ") +
         sim::scenario::to_string(settings) + ": " + what;
}

// Makes the report's input. Moves the cells out of `results`, since records of many runs are large.
sim::ReportInput report_input(const Job& job, Results& results) {
  const RunName first = results.first_broken.value_or(job.plan.run(0));
  sim::ReportInput input;
  input.scenario_text = job.text;
  input.scenario = job.plan.scenario;
  input.cells = std::move(results.cells);
  input.command = repeat_command(job.arguments, job.plan, first);
  input.version = LEEWAY_VERSION_STRING;
  input.complete = results.complete();
  if (!results.failures.empty()) {
    const RunFailure& failed = results.failures.front();
    input.failure =
        failures_title(results) + ": " + failure_text(job, failed.run, failed.status.c_str());
  }
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
  const bool colour = ::isatty(STDOUT_FILENO) != 0;
  print(result_table(job.plan.scenario, cells, colour) + checkers_text(cells));
  std::printf("trace     %s\n", sim::hash_text(sim::trace_hash_of(cells)).c_str());
  if (job.folder) std::printf("report    %s\n", job.folder->path("report.html").c_str());
  if (job.trace.active()) std::printf("packets   %s\n", job.arguments.trace_path.c_str());
}

// Prints the first run of each kind of failure, and the command that repeats it.
void print_failures(const Job& job, const Results& results,
                    std::span<const sim::CellRecord> cells) {
  const auto print = [&job](const char* title, const RunName& run, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n  repeat it: %s\n", title, failure_text(job, run, what).c_str(),
                 repeat_command(job.arguments, job.plan, run).c_str());
  };
  if (!results.failures.empty()) {
    print(failures_title(results).c_str(), results.failures.front().run,
          results.failures.front().status.c_str());
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

void print_shard(const Job& job, const Results& results) {
  std::printf("%s: %zu of %zu runs, in %s\n", to_string(job.plan.shard).c_str(), results.finished,
              job.plan.all_runs(), job.folder->path("").c_str());
}

}  // namespace

Status publish(const Job& job, Results& results, const Status& so_far) {
  if (!job.plan.shard.whole()) {
    print_shard(job, results);
    print_failures(job, results, results.cells);
    return so_far;
  }
  const sim::ReportInput input = report_input(job, results);
  const Status written = so_far.ok() ? write_results(job, input) : so_far;
  print_results(job, input.cells);
  print_failures(job, results, input.cells);
  return written;
}

}  // namespace leeway::tools::simulation
