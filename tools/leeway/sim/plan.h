// Makes the runs of a command from what a person typed. Everything that can be refused before a run
// begins is refused here.
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
  // The scenario as it is run: settings applied, paths of files complete.
  sim::scenario::Scenario scenario;
  std::vector<sim::scenario::Cell> grid;  // in the order of the sweeps
  Seeds seeds;
  Shard shard;

  std::size_t all_runs() const { return grid.size() * seeds.count; }
  // Returns the number of this shard's runs.
  std::size_t runs() const { return shard.share(all_runs()); }
  // Names the runs in the order of the grid, with the seed changing fastest.
  RunName run(std::size_t index) const {
    const std::size_t place = shard.place(index);
    return {place / seeds.count, seeds.from + place % seeds.count};
  }
};

// "3..17" or "5": both ends are run.
Result<Seeds> parse_seeds(std::string_view text);

// Reads the scenario, applies settings and seeds, makes the grid. Relative paths in settings and
// swept values start at the scenario's folder, as those in the file do.
Result<Plan> make_plan(const Arguments& arguments);

// The scenario as text format, below a line that names the version of Leeway: Two runs of the same
// text give the same results.
std::string scenario_text(const sim::scenario::Scenario& scenario);

}  // namespace leeway::tools::simulation
