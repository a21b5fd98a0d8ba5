#include "sim/plan.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>

#include "base/read_number.h"
#include "leeway/version.h"
#include "run/operation_plan.h"
#include "scenario/parse.h"
#include "scenario/set_field.h"

namespace leeway::tools::simulation {
namespace {

using sim::scenario::Scenario;

Status refuse_seeds(std::string_view text, const char* why) {
  return Status::error(StatusCode::kInvalidArgument, "--seeds %.*s: %s",
                       static_cast<int>(std::min<std::size_t>(text.size(), 60)), text.data(), why);
}

// Refuses a scenario file without fields: it is probably the wrong file, and would run with
// defaults.
Status refuse_empty(const Scenario& read, const std::string& path) {
  Scenario rest = read;
  rest.clear_name();  // read_file() may have set the name
  if (rest.ByteSizeLong() > 0) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "%s says nothing; write at least one field, such as ranks: 4",
                       sim::scenario::short_file_name(path).c_str());
}

// Makes paths of files in the scenario absolute, so that the scenario means the same in any folder.
Status complete_paths(Scenario& scenario, const std::filesystem::path& folder) {
  return sim::scenario::resolve_files(scenario, folder.string());
}

Status apply_settings(const Arguments& arguments, Scenario& scenario) {
  if (arguments.full) {
    const Status applied = sim::scenario::apply_full(scenario);
    if (!applied.ok()) return applied;
  }
  for (const std::string& setting : arguments.settings) {
    const Status applied = sim::scenario::apply_setting(scenario, setting);
    if (!applied.ok()) {
      return Status::error(applied.code(), "--set %s: %s", setting.substr(0, 80).c_str(),
                           applied.c_str());
    }
  }
  if (arguments.seeds.empty()) return {};
  const Result<Seeds> seeds = parse_seeds(arguments.seeds);
  if (!seeds.ok()) return seeds.status();
  scenario.mutable_seed()->set_from(seeds->from);
  scenario.mutable_seed()->set_count(seeds->count);
  return {};
}

Result<Scenario> read_scenario(const Arguments& arguments) {
  Result<Scenario> scenario = sim::scenario::read_file(arguments.file);
  if (!scenario.ok()) return scenario;
  Status status = refuse_empty(*scenario, arguments.file);
  const std::filesystem::path here = std::filesystem::current_path();
  const std::filesystem::path folder = here / std::filesystem::path(arguments.file).parent_path();
  if (status.ok()) status = complete_paths(*scenario, here);
  if (status.ok()) status = apply_settings(arguments, *scenario);
  if (status.ok()) status = complete_paths(*scenario, folder);
  if (!status.ok()) return status;
  return scenario;
}

}  // namespace

Result<Seeds> parse_seeds(std::string_view text) {
  constexpr std::uint64_t kFromMax = 1'000'000'000'000'000;  // the same limit as in the schema
  constexpr std::uint64_t kCountMax = 1'000'000;
  const std::size_t dots = text.find("..");
  std::uint64_t from = 0, to = 0;
  const bool from_read = read_number(text.substr(0, dots), from);
  const bool to_read = dots == std::string_view::npos ? read_number(text, to)
                                                      : read_number(text.substr(dots + 2), to);
  if (!from_read || !to_read) return refuse_seeds(text, "write two whole numbers, such as 1..20");
  if (to < from) return refuse_seeds(text, "the last seed is below the first");
  if (from > kFromMax) return refuse_seeds(text, "seeds are 0 to 1e15");
  if (to - from >= kCountMax) return refuse_seeds(text, "at most 1000000 seeds at a time");
  return Seeds{from, static_cast<std::uint32_t>(to - from + 1)};
}

Result<Plan> make_plan(const Arguments& arguments) {
  const Result<Shard> shard = parse_shard(arguments.shard);
  if (!shard.ok()) return shard.status();
  const Result<Scenario> scenario = read_scenario(arguments);
  if (!scenario.ok()) return scenario.status();
  Result<std::vector<sim::scenario::Cell>> grid = sim::scenario::cells(*scenario);
  if (!grid.ok()) return grid.status();
  const std::filesystem::path folder =
      std::filesystem::current_path() / std::filesystem::path(arguments.file).parent_path();
  for (sim::scenario::Cell& cell : *grid) {
    const Status complete = complete_paths(cell.scenario, folder);
    if (!complete.ok()) return complete;
    const Status taken = sim::check_calls(cell.scenario);
    if (taken.ok()) continue;
    const std::string settings = sim::scenario::to_string(cell.settings).substr(0, 120);
    return Status::error(taken.code(), "%s%s%s is refused by the library: %s",
                         sim::scenario::short_file_name(arguments.file).c_str(),
                         settings.empty() ? "" : " with ", settings.c_str(), taken.c_str());
  }
  const auto& seed = scenario->seed();
  return Plan{*scenario, std::move(*grid), Seeds{seed.from(), seed.count()}, *shard};
}

std::string scenario_text(const Scenario& scenario) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(scenario, &text);
  return "# As run by leeway " LEEWAY_VERSION_STRING ".\n" + text;
}

}  // namespace leeway::tools::simulation
