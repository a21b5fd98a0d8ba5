// Times of a series of iterations, reduced over ranks and over iterations.
#pragma once

#include <span>
#include <vector>

namespace leeway::tools::perf {

// Returns the value whose place in order is nearest to `fraction` (0 .. 1) of the last place.
// `values` need not be sorted and must not be empty.
double percentile(std::span<const double> values, double fraction);

double mean(std::span<const double> values);

// `all` holds one row of `iterations` values per rank, rank after rank. An iteration takes as long
// as its slowest rank.
std::vector<double> slowest_rank(std::span<const double> all, std::size_t iterations);

}  // namespace leeway::tools::perf
