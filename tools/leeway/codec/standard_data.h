// Random test values of known distributions. All machines get the same values, except for the last
// bits, in which mathematics libraries differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leeway::tools::codecs {

// Returns normal values with mean 0 and variance 1.
std::vector<float> normal_values(std::size_t count, std::uint64_t seed);

// Returns values with a random sign and magnitude e^(sigma z), where z is normal. Gradients are
// distributed like this (arXiv 2006.08173).
std::vector<float> lognormal_values(std::size_t count, double sigma, std::uint64_t seed);

}  // namespace leeway::tools::codecs
