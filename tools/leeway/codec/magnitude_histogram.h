// A histogram of log2|x|: how often each binade occurs in a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leeway::tools::codecs {

class MagnitudeHistogram {
 public:
  static constexpr int kBinadeMin = -149;  // binade of the smallest subnormal
  static constexpr int kBinadeMax = 127;

  void add(std::span<const float> values);

  // Returns the number of finite elements with 2^binade <= |x| < 2^(binade + 1).
  std::uint64_t count(int binade) const;
  // Returns the number of finite elements that are not 0.
  std::uint64_t total() const;
  // Return the least and the largest magnitude of the finite elements that are not 0. Both are 0 if
  // there are no such elements.
  float magnitude_min() const;
  float magnitude_max() const;

 private:
  std::array<std::uint64_t, kBinadeMax - kBinadeMin + 1> counts_{};
  std::uint32_t bits_min_ = 0x7F800000;
  std::uint32_t bits_max_ = 0;
};

// The binades that share one bar: those with first <= log2|x| < last + 1.
struct HistogramBar {
  int first = 0;
  int last = 0;
  double share = 0.0;  // share of the histogram's total
};

// Returns at most `bars_max` (>= 3) bars, lowest first. A tail with less than 0.1 % of the elements
// gets only one bar if bars are too few for one a binade.
std::vector<HistogramBar> histogram_bars(const MagnitudeHistogram& histogram, std::size_t bars_max);

// Returns one line for each bar, drawn with block characters (UTF-8) and at most `width` columns
// wide.
std::string histogram_text(std::span<const HistogramBar> bars, std::size_t width);

}  // namespace leeway::tools::codecs
