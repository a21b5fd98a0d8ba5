// The grid of a scenario's sweeps: one cell for each combination of their values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim::scenario {

// Limits on the cells of a grid and on its runs (cells times seeds). A larger grid is taken for a
// mistake.
inline constexpr std::size_t kCellsMax = 4096;
inline constexpr std::size_t kRunsMax = 10'000'000;

struct Setting {
  std::string field;  // as the sweep writes it
  std::string value;  // as --set takes it
  // True if the cell's endpoint uses the field. If not, this cell stands for all values of the
  // field.
  bool acts = true;
  // True if the value is the first one of its sweep, or the sweep does not vary alone.
  bool at_base = true;
  std::string title;  // title of the field, for people, if the file has one
  std::string name;   // name of the value, for people, if the file has one

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Cell {
  std::size_t index = 0;          // in the grid, the last sweep of the file changing fastest
  std::vector<Setting> settings;  // one for each sweep, in file order
  Scenario scenario;              // without sweeps; runs once per seed
};

// Returns the values of a sweep over `field` as texts. Values of a range are the same on every
// machine, because they are computed without pow() and rounded to nine digits, or to whole numbers
// for an integer field. An error says what is wrong with the sweep.
Result<std::vector<std::string>> values_of(const Sweep& sweep,
                                           const google::protobuf::FieldDescriptor& field);

// Returns the cells of the grid; a scenario without sweeps is one cell. If a cell's endpoint does
// not use a swept field, there is one cell for all values of the field. Only cells that exist have
// an index. Every cell is checked; an error names the cell's settings. File paths in swept values
// are not resolved; see resolve_files().
Result<std::vector<Cell>> cells(const Scenario& scenario);

// Returns text such as "link[0].rate_mbps=100 ranks=8". Settings that do not act are left out.
std::string to_string(const std::vector<Setting>& settings);

}  // namespace leeway::sim::scenario
