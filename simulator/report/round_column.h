// Figures of each round: the names that a plot over "round" may have as y.
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

// A point per round: the mean over runs with its standard error, in the label's unit. If there are
// more than kPointsMax rounds, neighbours are averaged.
inline constexpr std::size_t kPointsMax = 400;
Series over_rounds(const std::string& name, const std::vector<const RunRecord*>& runs,
                   const RoundColumn& column);
// How many rounds a point stands for.
std::size_t rounds_per_point(const std::vector<const RunRecord*>& runs);

}  // namespace leeway::sim
