#include <cmath>
#include <nlohmann/json.hpp>

#include "report/cell_summary.h"
#include "report/number_text.h"
#include "report/report.h"

namespace leeway::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNsPerMs = 1e6;

// Writes a setting's text as a number if it is one, so that programs need not parse it.
Json setting_value(const std::string& text) {
  const Json number = Json::parse(text, nullptr, false);
  return number.is_number() ? number : Json(text);
}

Json settings_json(const CellRecord& cell) {
  Json settings = Json::object();
  for (const scenario::Setting& setting : cell.settings) {
    if (setting.acts) settings[setting.field] = setting_value(setting.value);
  }
  return settings;
}

Json spread_json(const Spread& spread) {
  return {{"count", spread.count},          {"mean", spread.mean}, {"deviation", spread.deviation},
          {"standard_error", spread.error}, {"min", spread.min},   {"max", spread.max}};
}

Json percentiles_json(const Percentiles& values) {
  return {{"count", values.count}, {"mean", values.mean}, {"min", values.min},
          {"p50", values.p50},     {"p90", values.p90},   {"p99", values.p99},
          {"p99.9", values.p99_9}, {"max", values.max}};
}

Json check_json(const CheckSummary& check, bool with_cell) {
  Json json = {
      {"id", check.id},           {"title", check.title},       {"verdict", to_text(check.verdict)},
      {"checked", check.checked}, {"failures", check.failures}, {"failed_runs", check.failed_runs}};
  if (check.verdict == Verdict::failed) {
    json["first_failure"] = check.first_failure;
    json["seed"] = check.seed;
    if (with_cell) json["cell"] = check.cell;
  } else if (!check.first_failure.empty()) {
    json["reason"] = check.first_failure;
  }
  return json;
}

Json checks_json(const std::vector<CheckSummary>& checks, bool with_cell) {
  Json json = Json::array();
  for (const CheckSummary& check : checks) json.push_back(check_json(check, with_cell));
  return json;
}

Json network_json(const NetworkCounters& network) {
  constexpr std::array<const char*, kTrafficKinds> kKinds = {"data", "control", "cross"};
  Json json;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    json[kKinds[kind]] = {{"sent", network.sent[kind]},
                          {"copied", network.copied[kind]},
                          {"delivered", network.delivered[kind]},
                          {"lost", network.lost[kind]}};
  }
  return json;
}

const char* verdict_text(bool passed) {
  return passed ? "passed" : "failed";
}

Json cell_json(const CellSummary& cell) {
  Json json = {{"index", cell.cell->index},
               {"settings", settings_json(*cell.cell)},
               {"verdict", verdict_text(cell.passed())}};
  for (const RunRecord* run : cell.runs) {
    json["seeds"].push_back(run->seed);
    json["trace_hashes"].push_back(hash_text(run->trace_hash));
  }
  json["rounds"] = cell.rounds;
  json["packets"] = cell.packets;
  json["events"] = cell.events;
  json["simulated_ms"] = static_cast<double>(cell.simulated_ns) / kNsPerMs;
  json["measures"] = Json::object();
  for (const MeasureSummary& measure : cell.measures) {
    json["measures"][measure.name] = spread_json(measure.spread);
  }
  json["pooled"] = {{"round_ms", percentiles_json(cell.round_ms)},
                    {"call_ms", percentiles_json(cell.call_ms)}};
  json["network"] = network_json(cell.network);
  json["checks"] = checks_json(cell.checks, false);
  return json;
}

Json totals_json(const std::vector<CellSummary>& cells) {
  std::uint64_t runs = 0, rounds = 0, packets = 0, events = 0;
  double simulated_ms = 0;
  for (const CellSummary& cell : cells) {
    runs += cell.runs.size();
    rounds += cell.rounds;
    packets += cell.packets;
    events += cell.events;
    simulated_ms += static_cast<double>(cell.simulated_ns) / kNsPerMs;
  }
  return {{"cells", cells.size()}, {"runs", runs},     {"rounds", rounds},
          {"packets", packets},    {"events", events}, {"simulated_ms", simulated_ms}};
}

}  // namespace

std::string summary_json(const ReportInput& input) {
  const std::vector<CellSummary> cells = summarize(input.cells);
  bool passed = input.failure.empty();
  Json cell_list = Json::array();
  for (const CellSummary& cell : cells) {
    passed = passed && cell.passed();
    cell_list.push_back(cell_json(cell));
  }
  Json json = {{"format", "leeway-sim-summary"},
               {"version", kSummaryFormat},
               {"leeway", input.version},
               {"name", input.scenario.name()},
               {"description", input.scenario.description()},
               {"command", input.command},
               {"complete", input.complete},
               {"verdict", verdict_text(passed)},
               {"failure", input.failure.empty() ? Json() : Json(input.failure)},
               {"trace_hash", hash_text(trace_hash_of(input.cells))},
               {"totals", totals_json(cells)},
               {"checks", checks_json(all_checks(cells), true)},
               {"cells", std::move(cell_list)},
               {"scenario", input.scenario_text}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace leeway::sim
