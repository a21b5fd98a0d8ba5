#include "doctor/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace leeway::tools::doctor {
namespace {

struct Mark {
  const char* text;  // text padded to one width
  const char* colour;
};
constexpr std::array<Mark, 4> kMarks = {
    {{"       ", ""}, {"OK     ", "\x1b[32m"}, {"WARN   ", "\x1b[33m"}, {"MISSING", "\x1b[31m"}}};
constexpr const char* kColourOff = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";

std::string painted(const std::string& text, const char* paint, bool colour) {
  return colour && *paint != '\0' ? paint + text + kColourOff : text;
}

std::size_t count(std::span<const Finding> findings, Verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [=](const Finding& finding) { return finding.verdict == verdict; }));
}

std::size_t widest_name(std::span<const Finding> findings, const std::string& section) {
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    if (finding.section == section) width = std::max(width, finding.name.size());
  }
  return width;
}

std::string line_of(const Finding& finding, std::size_t name_width, bool colour) {
  const Mark& mark = kMarks.at(static_cast<std::size_t>(finding.verdict));
  std::string line = "  " + painted(mark.text, mark.colour, colour) + "  " + finding.name +
                     std::string(name_width - finding.name.size() + 2, ' ') + finding.value + "\n";
  if (!finding.remedy.empty())
    line += std::string(name_width + 13, ' ') + "-> " + finding.remedy + "\n";
  return line;
}

std::string summary_of(std::span<const Finding> findings, bool colour) {
  const std::size_t missing = count(findings, Verdict::missing);
  const std::size_t warnings = count(findings, Verdict::warn);
  if (missing == 0 && warnings == 0)
    return painted("Leeway runs here, and nothing could be better.\n", kBold, colour);
  std::string text = missing == 0
                         ? std::string("Leeway runs here")
                         : "Leeway does not run here: " + std::to_string(missing) + " missing";
  if (warnings > 0) {
    text += (missing == 0 ? "; " : ", ") + std::to_string(warnings) +
            (warnings == 1 ? " thing" : " things") + " could be better";
  }
  return painted(text + ".\n", kBold, colour);
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::info:
      return "info";
    case Verdict::ok:
      return "ok";
    case Verdict::warn:
      return "warn";
    case Verdict::missing:
      return "missing";
  }
  return "unknown";
}

std::string to_text(std::span<const Finding> findings, bool colour) {
  std::vector<std::string> sections;
  for (const Finding& finding : findings) {
    if (std::find(sections.begin(), sections.end(), finding.section) == sections.end()) {
      sections.push_back(finding.section);
    }
  }
  std::string text;
  for (const std::string& section : sections) {
    const std::size_t width = widest_name(findings, section);
    text += painted(section, kBold, colour) + "\n";
    for (const Finding& finding : findings) {
      if (finding.section == section) text += line_of(finding, width, colour);
    }
    text += "\n";
  }
  return text + summary_of(findings, colour);
}

std::string to_json(std::span<const Finding> findings) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"section", finding.section},
                    {"name", finding.name},
                    {"verdict", to_string(finding.verdict)},
                    {"value", finding.value},
                    {"remedy", finding.remedy}});
  }
  const nlohmann::json document = {{"findings", rows},
                                   {"warnings", count(findings, Verdict::warn)},
                                   {"missing", count(findings, Verdict::missing)}};
  // Replaces bytes that are not UTF-8, which values from the environment may hold.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int exit_code_of(std::span<const Finding> findings) {
  return count(findings, Verdict::missing) > 0 ? 1 : 0;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text.data(), text.size(), whole ? "%.0f %s" : "%.1f %s", value, kUnits.at(unit));
  return text.data();
}

}  // namespace leeway::tools::doctor
