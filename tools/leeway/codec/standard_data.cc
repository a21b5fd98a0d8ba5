#include "codec/standard_data.h"

#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace leeway::tools::codecs {
namespace {

// Returns a normal number, made of two uniform ones by Box and Muller. The first uniform number is
// never 0, so its logarithm exists.
double normal(std::uint64_t seed, std::size_t index) {
  const auto words = philox({static_cast<std::uint32_t>(index), 0, 0, 0}, philox_key(seed));
  const double radius = (words[0] + 0.5) * 0x1p-32;
  const double angle = words[1] * 0x1p-32;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

bool negative(std::uint64_t seed, std::size_t index) {
  return (keyed_hash(seed, static_cast<std::uint32_t>(index), 1, 0, 0) & 1) != 0;
}

}  // namespace

std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(normal(seed, i));
  return values;
}

std::vector<float> lognormal_values(std::size_t count, double sigma, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::exp(sigma * normal(seed, i));
    values[i] = static_cast<float>(negative(seed, i) ? -magnitude : magnitude);
  }
  return values;
}

}  // namespace leeway::tools::codecs
