// exp and log from additions, multiplications and divisions only. They round the same on every
// compiler and machine, unlike library functions, which differ in their last bits. The relative
// error of exp is below 4e-16. The error of log is below 3e-16 times the larger of |log(x)| and 1.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace leeway::sim {

namespace internal {

// Coefficients of the Taylor series of exp, 1 / 14! ... 1 / 0!. For |x| <= ln(2) / 2 the first
// omitted term is below 1e-19.
constexpr std::array<double, 15> make_exp_series() {
  std::array<double, 15> series{};
  double factorial = 1;
  for (std::size_t n = 0; n < series.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    series[series.size() - 1 - n] = 1 / factorial;
  }
  return series;
}
inline constexpr std::array<double, 15> kExpSeries = make_exp_series();

}  // namespace internal

// Returns 2^k for -1022 <= k <= 1023.
constexpr double power_of_two(int k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// Returns exp(x), or 0 for x below -708. An x above 709 is taken as 709, so the result is finite.
constexpr double portable_exp(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: its multiples by k are exact
  constexpr double kLn2Low = 1.9082149292705877e-10;
  if (x < -708) return 0;
  if (x > 709) x = 709;
  const int k = static_cast<int>(x * kLog2E + (x < 0 ? -0.5 : 0.5));
  const double r = (x - k * kLn2High) - k * kLn2Low;  // at most ln(2) / 2
  double sum = 0;
  for (const double coefficient : internal::kExpSeries) sum = sum * r + coefficient;
  return k > 1000 ? sum * power_of_two(k - 1) * 2 : sum * power_of_two(k);
}

// Returns log(x). x must be a normal number above 0.
constexpr double portable_log(double x) {
  constexpr double kLn2 = 0.6931471805599453;
  constexpr double kSqrt2 = 1.4142135623730951;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | std::uint64_t{1023} << 52);  // 1 .. 2
  if (m > kSqrt2) {
    m /= 2;
    ++k;
  }
  // log m = 2 artanh(s); the first term left out is below 3e-19.
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int odd = 21; odd > 1; odd -= 2) sum = (sum + 1.0 / odd) * (s * s);
  return k * kLn2 + (2 * s + 2 * s * sum);
}

// 1 / (1 + exp(-x)).
constexpr double logistic_function(double x) {
  const double e = portable_exp(x < 0 ? x : -x);
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// log(1 + exp(x)).
constexpr double softplus(double x) {
  return (x > 0 ? x : 0) + portable_log(1 + portable_exp(x < 0 ? x : -x));
}

}  // namespace leeway::sim
