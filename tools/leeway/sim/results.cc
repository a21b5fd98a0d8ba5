#include "sim/results.h"

#include <array>
#include <utility>

#include "format.h"
#include "report/cell_summary.h"

namespace leeway::tools::simulation {
namespace {

void append_word(std::string& words, const std::string& word) {
  if (!words.empty()) words += ' ';
  words += word;
}

void append_part(std::string& text, const char* title, const std::string& words) {
  if (words.empty()) return;
  if (!text.empty()) text += "; ";
  text += title + words;
}

void add(Results& results, const RunName& name, Outcome& outcome) {
  if (!outcome.failure.ok()) results.failures.push_back({name, outcome.failure});
  if (!outcome.record) return;
  ++results.finished;
  if (!outcome.record->passed()) {
    ++results.broken;
    if (!results.first_broken) results.first_broken = name;
  }
  results.cells[name.cell].runs.push_back(std::move(*outcome.record));
}

}  // namespace

Results collect(const Plan& plan, std::vector<Outcome> outcomes) {
  Results results;
  results.runs = plan.runs();
  for (const sim::scenario::Cell& cell : plan.grid) {
    results.cells.push_back({cell.index, cell.settings, {}});
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i) add(results, plan.run(i), outcomes[i]);
  return results;
}

std::string checkers_text(std::span<const sim::CellRecord> cells) {
  const std::vector<sim::CellSummary> summaries = sim::summarize(cells);
  std::array<std::string, 4> words;  // by verdict
  for (const sim::CheckSummary& check : sim::all_checks(summaries)) {
    const std::string runs = format(" (%llu %s)", (unsigned long long)check.failed_runs,
                                    check.failed_runs == 1 ? "run" : "runs");
    const bool failed = check.verdict == sim::Verdict::failed;
    append_word(words[static_cast<std::size_t>(check.verdict)],
                check.id + (failed ? runs : std::string()));
  }
  const auto of = [&words](sim::Verdict verdict) -> const std::string& {
    return words[static_cast<std::size_t>(verdict)];
  };
  std::string text;
  append_part(text, "FAILED: ", of(sim::Verdict::failed));
  append_part(text, text.empty() ? "all passed: " : "passed: ", of(sim::Verdict::passed));
  append_part(text, "skipped: ", of(sim::Verdict::skipped));
  append_part(text, "do not apply: ", of(sim::Verdict::not_applicable));
  return "checkers  " + (text.empty() ? "none ran" : text) + "\n";
}

}  // namespace leeway::tools::simulation
