// Columns with one figure a round, such as its loss. Plots whose x axis is "round" draw them by
// name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart.h"
#include "report/label.h"
#include "run/run_record.h"

namespace leeway::sim {

struct RoundColumn {
  std::string_view name;
  Label label;
  double (*value)(const RoundRecord& round);  // NaN if it is not known
};

std::span<const RoundColumn> round_columns();
// Returns null if there is no column of that name.
const RoundColumn* find_round_column(std::string_view name);

// Returns a point per round: the mean over runs with its standard error, in the label's unit. Above
// kPointsMax rounds, a point is the mean of neighbouring rounds.
inline constexpr std::size_t kPointsMax = 400;
Series over_rounds(const std::string& name, const std::vector<const RunRecord*>& runs,
                   const RoundColumn& column);
// How many rounds a point stands for.
std::size_t rounds_per_point(const std::vector<const RunRecord*>& runs);

}  // namespace leeway::sim
