// The doctor's findings, and how they are shown. This code does no probing, so that it can be
// tested.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leeway::tools::doctor {

enum class Verdict : std::uint8_t {
  info = 0,  // neither good nor bad
  ok,
  warn,     // Leeway runs, but slower or with less than it could
  missing,  // Leeway does not run until this is repaired
};
const char* to_string(Verdict verdict);

struct Finding {
  std::string section;
  std::string name;
  Verdict verdict = Verdict::info;
  std::string value;
  std::string remedy;  // a command or one sentence that repairs the problem; empty if there is none
};
using Findings = std::vector<Finding>;

// Returns the report: sections in order of first appearance, a line for each finding with its
// remedy below it, and a line that sums up. `colour`: ANSI colours for a terminal.
std::string to_text(std::span<const Finding> findings, bool colour);

// Returns JSON: {"findings": [{"section", "name", "verdict", "value", "remedy"}], "warnings": n,
// "missing": n}
std::string to_json(std::span<const Finding> findings);

int exit_code_of(std::span<const Finding> findings);

// Returns a size as text: "208 KiB", "8 MiB"; exact below 1 KiB.
std::string bytes_text(std::uint64_t bytes);

}  // namespace leeway::tools::doctor
