// Values of known distribution. They are the same on every machine, up to the last bit of its
// mathematics library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leeway::tools::codecs {

// Mean 0, variance 1.
std::vector<float> normal_values(std::size_t count, std::uint64_t seed);

// A random sign times e^(sigma z), with normal z. Gradients look like this: arXiv 2006.08173.
std::vector<float> lognormal_values(std::size_t count, double sigma, std::uint64_t seed);

}  // namespace leeway::tools::codecs
