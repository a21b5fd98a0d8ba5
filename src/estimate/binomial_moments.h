// Moments of the number of arrivals K ~ Binomial(n, 1-p) that the variances of the estimators are
// made of.
//
// Each is a sum of positive terms or a recursion with positive terms, so nothing cancels for p near
// 0 or 1.
#pragma once

#include <cmath>
#include <cstdint>

namespace leeway::estimate {

// E[1/(1+K)] for K ~ Binomial(n-1, 1-p): the expected share of the owner, who is always there,
// among n. It equals (1-p^n)/(n(1-p)), written as a geometric sum.
inline double mean_owner_share(std::uint32_t n, double p) {
  double sum = 0.0;
  double power = 1.0;
  for (std::uint32_t k = 0; k < n; ++k, power *= p) sum += power;
  return sum / n;
}

// h_n = E[1/K ; K >= 1] for K ~ Binomial(n, 1-p), outcomes with K = 0 counting as zero. From
// C(n,k)/k = C(n-1,k)/k + C(n,k)/n follows h_n = p h_(n-1) + (1-p^n)/n.
inline double mean_inverse_count(std::uint32_t n, double p) {
  double mean = 0.0;
  double power = 1.0;
  for (std::uint32_t m = 1; m <= n; ++m) {
    power *= p;
    mean = p * mean + (1.0 - power) / m;
  }
  return mean;
}

// E[n/K | K >= 1]: mean weight of a link that is rescaled by its realised rate. n >= 1, 0 <= p < 1.
inline double mean_realised_weight(std::uint32_t n, double p) {
  return n * mean_inverse_count(n, p) / (1.0 - std::pow(p, n));
}

}  // namespace leeway::estimate
