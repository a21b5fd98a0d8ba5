// Statistics of iteration times, over ranks and over iterations.
#pragma once

#include <span>
#include <vector>

namespace leeway::tools::perf {

// Sorts the values, and returns the one at index `fraction` (0 .. 1) times the last index, rounded.
// `values` need not be sorted and must not be empty.
double percentile(std::span<const double> values, double fraction);

double mean(std::span<const double> values);

// Returns the time of each iteration on the rank that was slowest in it. `all` holds `iterations`
// values for each rank, rank after rank.
std::vector<double> slowest_rank(std::span<const double> all, std::size_t iterations);

}  // namespace leeway::tools::perf
