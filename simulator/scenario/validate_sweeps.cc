// Rules about sweeps: they name existing fields, with values that these fields can have.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "scenario/set_field.h"
#include "scenario/sweep.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

// Fields that cannot be swept, because they describe the grid or its report and not a single run.
constexpr std::array<std::string_view, 6> kNotSwept = {"name",  "description", "seed",
                                                       "sweep", "report",      "full"};

std::string path_of(int index) {
  return "sweep[" + std::to_string(index) + "]";
}

Status check_target(const Scenario& scenario, int index, const FieldPath& path,
                    const Places& places) {
  const std::string& head = path.front().field->name();
  if (std::find(kNotSwept.begin(), kNotSwept.end(), head) != kNotSwept.end()) {
    return places.refuse(path_of(index) + ".field", "is " + head + ", which cannot be swept");
  }
  for (int i = 0; i < index; ++i) {
    const Result<FieldPath> earlier =
        parse_path(*Scenario::descriptor(), scenario.sweep(i).field());
    if (!earlier.ok() || *earlier != path) continue;
    return places.refuse(path_of(index) + ".field", "is swept by " + path_of(i) + " already");
  }
  return {};
}

// Checks each value by itself. cells() checks combinations.
Status check_values(const Scenario& scenario, int index, const FieldPath& path,
                    const Places& places, std::size_t& count) {
  const Result<std::vector<std::string>> values =
      values_of(scenario.sweep(index), *path.back().field);
  if (!values.ok()) return places.refuse(path_of(index), std::string(values.status().text()));
  count = values->size();
  const auto names = static_cast<std::size_t>(scenario.sweep(index).names_size());
  if (names != 0 && names != count) {
    return places.refuse(path_of(index) + ".names",
                         "has " + std::to_string(names) + (names == 1 ? " entry" : " entries") +
                             "; the sweep has " + std::to_string(count) + " values");
  }
  Scenario copy = scenario;
  for (const std::string& value : *values) {
    const Status set = set_field(copy, path, value);
    if (!set.ok()) return places.refuse(path_of(index), "cannot be: " + std::string(set.text()));
  }
  return {};
}

Status check_sweep(const Scenario& scenario, int index, const Places& places, std::size_t& count) {
  const Result<FieldPath> path = parse_path(*Scenario::descriptor(), scenario.sweep(index).field());
  if (!path.ok()) {
    return places.refuse(path_of(index) + ".field", "is " + std::string(path.status().text()));
  }
  const Status target = check_target(scenario, index, *path, places);
  return target.ok() ? check_values(scenario, index, *path, places, count) : target;
}

// Checks the long form whenever a file is read, because it is rarely run and errors would stay
// hidden.
Status check_full(const Scenario& scenario, const Places& places) {
  Scenario longer = scenario;
  for (int i = 0; i < scenario.full_size(); ++i) {
    const Status applied = apply_setting(longer, scenario.full(i));
    if (applied.ok()) continue;
    return places.refuse("full[" + std::to_string(i) + "]",
                         "is wrong: " + std::string(applied.text()));
  }
  longer.clear_full();
  const Status valid = scenario.full_size() == 0 ? Status() : validate(longer);
  if (valid.ok()) return {};
  return places.refuse("full", "makes the scenario wrong: " + std::string(valid.text()));
}

}  // namespace

Status check_sweeps(const Scenario& scenario, const Places& places) {
  std::size_t cell_count = 1;
  for (int i = 0; i < scenario.sweep_size(); ++i) {
    std::size_t count = 1;
    const Status checked = check_sweep(scenario, i, places, count);
    if (!checked.ok()) return checked;
    cell_count *= count;
    if (cell_count > kCellsMax) {
      return places.refuse(path_of(i), "makes " + std::to_string(cell_count) + " cells; at most " +
                                           std::to_string(kCellsMax));
    }
  }
  const std::size_t runs = cell_count * scenario.seed().count();
  if (runs <= kRunsMax) return check_full(scenario, places);
  return places.refuse(
      "seed.count", "makes " + std::to_string(runs) + " runs; at most " + std::to_string(kRunsMax));
}

}  // namespace leeway::sim::scenario
