// Makes the runs of a command from the arguments. All errors that can be found before a run begins
// are reported here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"
#include "scenario/sweep.h"
#include "sim/arguments.h"
#include "sim/shard.h"

namespace leeway::tools::simulation {

struct Seeds {
  std::uint64_t from = 1;
  std::uint32_t count = 1;

  friend bool operator==(const Seeds&, const Seeds&) = default;
};

// One run: a cell of the grid with one seed.
struct RunName {
  std::size_t cell = 0;
  std::uint64_t seed = 0;
};

struct Plan {
  // The scenario to be run, with settings applied and absolute paths.
  sim::scenario::Scenario scenario;
  std::vector<sim::scenario::Cell> grid;  // in the order of the sweeps
  Seeds seeds;
  Shard shard;

  std::size_t all_runs() const { return grid.size() * seeds.count; }
  // Returns the number of this shard's runs.
  std::size_t runs() const { return shard.share(all_runs()); }
  // Returns a run's name. Runs are in the order of the grid, and the seed changes fastest.
  RunName run(std::size_t index) const {
    const std::size_t place = shard.place(index);
    return {place / seeds.count, seeds.from + place % seeds.count};
  }
};

// Parses seeds: "5", or "3..17" with both ends included.
Result<Seeds> parse_seeds(std::string_view text);

// Reads the scenario, applies settings and seeds, and makes the grid. Relative paths are relative
// to the scenario's folder, also in settings and swept values.
Result<Plan> make_plan(const Arguments& arguments);

// Returns the scenario in text format, below a line with Leeway's version. Equal texts give equal
// results.
std::string scenario_text(const sim::scenario::Scenario& scenario);

}  // namespace leeway::tools::simulation
