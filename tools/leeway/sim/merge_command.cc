#include "sim/merge_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exit_code.h"
#include "report/run_json.h"
#include "sim/publish.h"
#include "sim/repeat_command.h"
#include "sim/swarm_outcome.h"
#include "text_file.h"

namespace leeway::tools::simulation {
namespace {

struct MergeArguments {
  std::vector<std::string> parts;
  std::string out;
  std::string json_path;
  bool overwrite = false;
};

Status refuse(const std::string& what, const char* why) {
  return Status::error(StatusCode::kInvalidArgument, "%s %s", what.c_str(), why);
}

// ---- parts that are folders of `leeway sim` ----

Result<std::string> read_file(const std::string& part, const char* name) {
  auto text = OutputFolder::of(part).read(name);
  if (!text.ok()) return text.status();
  if (!*text) return refuse(part, "holds no results of leeway sim");
  return std::move(**text);
}

Status same_scenario(const MergeArguments& arguments, const std::string& text) {
  for (const std::string& part : arguments.parts) {
    const Result<std::string> other = read_file(part, kScenarioFile);
    if (!other.ok()) return other.status();
    if (*other == text) continue;
    return refuse(part, ("holds another scenario, other settings or another version than " +
                         arguments.parts.front())
                            .c_str());
  }
  return {};
}

// Makes the plan for the scenario of all parts, with the arguments of the command that made the
// first part.
Result<Job> prepare(const MergeArguments& arguments) {
  const std::string& first = arguments.parts.front();
  const Result<std::string> typed = read_file(first, kArgumentsFile);
  if (!typed.ok()) return typed.status();
  const Result<std::string> text = read_file(first, kScenarioFile);
  if (!text.ok()) return text.status();
  const Status same = same_scenario(arguments, *text);
  if (!same.ok()) return same;

  Arguments stored;
  stored.file = (std::filesystem::path(first) / kScenarioFile).string();
  Result<Plan> plan = make_plan(stored);
  if (!plan.ok()) return plan.status();
  if (scenario_text(plan->scenario) != *text)
    return refuse(first, "was written by another version of Leeway");
  Result<Arguments> told = parse_arguments(*typed);
  if (!told.ok()) return refuse(first + "/" + kArgumentsFile + ":", told.status().c_str());
  told->json_path = arguments.json_path;
  const Status writable = check_writable(arguments.json_path);
  if (!writable.ok()) return writable;
  return Job{std::move(*told), std::move(*plan), *text, {}, {}};
}

// Reads a part's runs into `outcomes`. A run that several parts hold must be the same in all of
// them. A damaged run counts as missing.
Status read_runs(const Plan& plan, const std::string& part, std::vector<Outcome>& outcomes) {
  const OutputFolder folder = OutputFolder::of(part);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const RunName name = plan.run(i);
    const auto text = folder.read_run(name);
    if (!text.ok()) return text.status();
    if (!*text) continue;
    auto record = sim::parse_run_json(**text);
    if (!record.ok() || record->seed != name.seed) continue;
    const auto& present = outcomes[i].record;
    if (present && present->trace_hash != record->trace_hash) {
      return Status::error(StatusCode::kMismatch,
                           "cell %zu, seed %llu: %s has another run than a part before it; parts "
                           "must come from one build",
                           name.cell, static_cast<unsigned long long>(name.seed), part.c_str());
    }
    outcomes[i].record = std::move(*record);
  }
  return {};
}

// Opens the folder for the merged result. A single part is completed in its own folder unless
// another one was named.
Status open_folder(const MergeArguments& arguments, Job& job,
                   const std::vector<Outcome>& outcomes) {
  const bool in_place = arguments.out.empty() && arguments.parts.size() == 1;
  if (arguments.out.empty() && !in_place) return {};
  const Existing existing = in_place              ? Existing::resume
                            : arguments.overwrite ? Existing::overwrite
                                                  : Existing::refuse;
  const auto folder =
      OutputFolder::open(in_place ? arguments.parts.front() : arguments.out, job.text, existing);
  if (!folder.ok()) return folder.status();
  job.folder = *folder;
  Status status = folder->write(kArgumentsFile, arguments_json(job.arguments));
  for (std::size_t i = 0; i < outcomes.size() && status.ok() && !in_place; ++i) {
    if (!outcomes[i].record) continue;
    status = folder->write_run(job.plan.run(i), sim::run_json(*outcomes[i].record));
  }
  return status;
}

void print_missing(const Job& job, const std::vector<Outcome>& outcomes, std::size_t missing) {
  if (missing == 0) return;
  std::size_t first = 0;
  while (outcomes[first].record) ++first;
  std::fprintf(stderr, "%zu of %zu runs are in no part\n  the first: %s\n", missing,
               job.plan.runs(),
               repeat_command(job.arguments, job.plan, job.plan.run(first)).c_str());
}

int merge_runs(const MergeArguments& arguments) {
  Result<Job> job = prepare(arguments);
  if (!job.ok()) return complain(job.status(), kExitUsage);
  std::vector<Outcome> outcomes(job->plan.runs());
  Status status;
  for (const std::string& part : arguments.parts) {
    if (status.ok()) status = read_runs(job->plan, part, outcomes);
  }
  if (status.ok()) status = open_folder(arguments, *job, outcomes);
  if (!status.ok()) return complain(status);
  std::size_t missing = 0;
  for (const Outcome& outcome : outcomes) missing += outcome.record ? 0 : 1;
  print_missing(*job, outcomes, missing);
  Results results = collect(job->plan, std::move(outcomes));
  status = publish(*job, results, {});
  if (!status.ok()) return complain(status, kExitFailed);
  return missing == 0 && results.passed() ? 0 : kExitFailed;
}

// ---- parts that are files of `leeway sim swarm` ----

Result<SwarmOutcome> read_outcome(const std::string& part) {
  std::ifstream file(part, std::ios::binary);
  if (!file) return refuse(part, "cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<SwarmOutcome> outcome = parse_outcome(text);
  if (!outcome.ok()) return refuse(part, outcome.status().c_str());
  return outcome;
}

int merge_seeds(const MergeArguments& arguments) {
  if (!arguments.out.empty())
    return complain(refuse("--out", "is for folders; a swarm's whole goes to --json"), kExitUsage);
  std::vector<SwarmOutcome> parts;
  for (const std::string& part : arguments.parts) {
    Result<SwarmOutcome> outcome = read_outcome(part);
    if (!outcome.ok()) return complain(outcome.status(), kExitUsage);
    parts.push_back(std::move(*outcome));
  }
  const Result<SwarmOutcome> whole = merge_outcomes(parts, arguments.parts);
  if (!whole.ok()) return complain(whole.status(), kExitUsage);
  if (arguments.json_path != "-") print_outcome(*whole);
  if (!arguments.json_path.empty()) {
    const Status status = write_text(arguments.json_path, outcome_json(*whole));
    if (!status.ok()) return complain(status, kExitFailed);
  }
  const bool all = whole->tally.seeds == whole->seeds.count;
  if (!all) {
    std::fprintf(stderr, "%llu of %u seeds were judged\n",
                 static_cast<unsigned long long>(whole->tally.seeds), whole->seeds.count);
  }
  return all && whole->tally.failures.empty() ? 0 : kExitFailed;
}

}  // namespace

void add_merge_command(CLI::App& sim, int& exit_code) {
  CLI::App* const command =
      sim.add_subcommand("merge", "Join what several machines made with --shard");
  const auto a = std::make_shared<MergeArguments>();
  command
      ->add_option("PART", a->parts,
                   "Folders that --out named, or files that --json of the swarm named")
      ->required();
  command->add_option(
      "--out", a->out,
      "Folder for the whole (default: a single part's own; of several: table only)");
  command->add_option("--json", a->json_path,
                      "Also write the whole to this file (- for standard output only)");
  command->add_flag("--overwrite", a->overwrite, "Replace the results that --out holds");
  command->callback([a, &exit_code] {
    std::error_code error;
    const bool folders = std::filesystem::is_directory(a->parts.front(), error);
    exit_code = folders ? merge_runs(*a) : merge_seeds(*a);
  });
}

}  // namespace leeway::tools::simulation
