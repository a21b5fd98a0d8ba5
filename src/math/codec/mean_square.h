// Sums of squares, in double, for measuring noise. Non-finite elements make the sum non-finite.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace leeway::codec {

namespace internal {

// Sixteen partial sums, so that the compiler can keep them in vectors and the result does not
// depend on how wide they are.
template <typename Term>
double sum_of(std::size_t count, Term term) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(i + lane);
  }
  for (; i < count; ++i) sums[i % kLanes] += term(i);
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace internal

inline double sum_of_squares(std::span<const float> values) {
  return internal::sum_of(
      values.size(), [&](std::size_t i) { return static_cast<double>(values[i]) * values[i]; });
}

// The spans have equal sizes.
inline double sum_of_squared_differences(std::span<const float> a, std::span<const float> b) {
  return internal::sum_of(a.size(), [&](std::size_t i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    return difference * difference;
  });
}

}  // namespace leeway::codec
