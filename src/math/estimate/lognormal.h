// Lognormal model of gradients: log2|x| is near a normal distribution (arXiv 2006.08173). Its
// standard deviation says which codec errs least, and how much can be pruned at what loss.
//
// LognormalFit measures it. LognormalPruning has closed forms for an exact lognormal; README.md,
// "Lognormal statistics", has them with check values. Spreads are standard deviations of log2|x|
// (sigma) or of ln|x| (s = sigma ln 2), as named.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace leeway::estimate {

// Moments of log2|x|, gathered over any number of spans and merged between ranks by adding their
// sums. Zeros, infinities and NaN have no logarithm and are only counted.
//
// About 3 ns an element: meant for a sample of a gradient rather than all of it. Independent of the
// processor's floating-point mode: subnormals count as what they are.
class LognormalFit {
 public:
  static constexpr std::size_t kSums = 6;

  LognormalFit() = default;
  // Takes sums that were added up elsewhere.
  explicit LognormalFit(const std::array<double, kSums>& sums) : sums_(sums) {}

  void add(std::span<const float> values);
  // Sums over all elements so far, to be added element by element with those of other ranks.
  const std::array<double, kSums>& sums() const { return sums_; }

  double count() const { return sums_[kCount]; }
  double zeros() const { return sums_[kZeros]; }
  double non_finite() const { return count() - zeros() - nonzero(); }
  // Moments over finite elements that are not zero; 0 if there are none.
  double mean_log2() const;
  double sigma_log2() const;
  // Mean square over finite elements, zeros included; 0 if there are none.
  double mean_square() const;

 private:
  enum Sum : std::size_t { kCount, kZeros, kNonzero, kLog2, kLog2Squared, kSquare };

  double nonzero() const { return sums_[kNonzero]; }

  std::array<double, kSums> sums_{};
};

// Unbiased stochastic pruning: |x| >= threshold stays, a smaller x becomes +-threshold with
// probability |x|/threshold and zero otherwise. For ln|x| of mean `mu` and standard deviation `s` >
// 0.
struct LognormalPruning {
  double mu = 0.0;
  double s = 1.0;

  // Expected part of the elements that become zero.
  double pruned_fraction(double threshold) const;
  // The threshold that prunes the fraction `sparsity` of the elements, 0 < sparsity < 1; s < 30.
  double threshold(double sparsity) const;
  // Cosine of the angle between the pruned vector and the original, for many elements.
  double cosine(double threshold) const;
};

}  // namespace leeway::estimate
