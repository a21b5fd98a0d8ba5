#include "codec/magnitude_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "format.h"

namespace leeway::tools::codecs {
namespace {

constexpr std::uint32_t kMagnitudeMask = 0x7FFFFFFF;
constexpr std::uint32_t kInfinity = 0x7F800000;
constexpr double kTailShare = 0.001;

// Characters that are filled from the left by 0 to 8 eighths.
constexpr std::array<const char*, 9> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// Returns the index in counts_ for the bits of a float's magnitude, which must be finite and not 0.
std::size_t binade_index(std::uint32_t magnitude) {
  if (magnitude < 0x00800000) return static_cast<std::size_t>(std::bit_width(magnitude) - 1);
  return (magnitude >> 23) + 22;  // 2^-126, field 1, follows 23 binades of subnormals
}

// Returns the first and last binade of the histogram's body. Less than kTailShare of all elements
// lies below the body, and less than kTailShare above it.
std::pair<int, int> body_of(const MagnitudeHistogram& histogram) {
  const auto limit = static_cast<double>(histogram.total()) * kTailShare;
  int first = MagnitudeHistogram::kBinadeMin;
  int last = MagnitudeHistogram::kBinadeMax;
  for (std::uint64_t below = histogram.count(first); static_cast<double>(below) < limit;) {
    below += histogram.count(++first);
  }
  for (std::uint64_t above = histogram.count(last); static_cast<double>(above) < limit;) {
    above += histogram.count(--last);
  }
  return {first, last};
}

std::string label_of(const HistogramBar& bar) {
  if (bar.first == bar.last) return std::to_string(bar.first);
  return std::to_string(bar.first) + " .. " + std::to_string(bar.last);
}

// Draws `part` (0 .. 1) of `width` characters. A part above 0 gets at least the thinnest mark, so
// that it is visible.
std::string drawn(double part, std::size_t width) {
  const auto wanted = static_cast<std::size_t>(std::lround(part * static_cast<double>(8 * width)));
  const std::size_t eighths = part > 0.0 ? std::max<std::size_t>(1, wanted) : 0;
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += kEighths[8];
  return text + kEighths[eighths % 8];
}

}  // namespace

void MagnitudeHistogram::add(std::span<const float> values) {
  for (const float value : values) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & kMagnitudeMask;
    if (magnitude == 0 || magnitude >= kInfinity) continue;
    ++counts_[binade_index(magnitude)];
    bits_min_ = std::min(bits_min_, magnitude);
    bits_max_ = std::max(bits_max_, magnitude);
  }
}

std::uint64_t MagnitudeHistogram::count(int binade) const {
  return counts_.at(static_cast<std::size_t>(binade - kBinadeMin));
}

std::uint64_t MagnitudeHistogram::total() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : counts_) sum += n;
  return sum;
}

float MagnitudeHistogram::magnitude_min() const {
  return bits_min_ == kInfinity ? 0.0f : std::bit_cast<float>(bits_min_);
}
float MagnitudeHistogram::magnitude_max() const {
  return std::bit_cast<float>(bits_max_);
}

std::vector<HistogramBar> histogram_bars(const MagnitudeHistogram& histogram,
                                         std::size_t bars_max) {
  std::vector<HistogramBar> bars;
  const auto total = static_cast<double>(histogram.total());
  if (total == 0.0) return bars;
  const auto add_bar = [&](int first, int last) {
    std::uint64_t count = 0;
    for (int binade = first; binade <= last; ++binade) count += histogram.count(binade);
    bars.push_back({first, last, static_cast<double>(count) / total});
  };
  const int lowest = std::ilogb(histogram.magnitude_min());
  const int highest = std::ilogb(histogram.magnitude_max());
  const bool all_fit = highest - lowest < static_cast<int>(bars_max);
  const auto [first, last] = all_fit ? std::pair(lowest, highest) : body_of(histogram);
  const int body_bars = static_cast<int>(bars_max) - (all_fit ? 0 : 2);  // without the tails
  const int step = (last - first) / body_bars + 1;
  if (lowest < first) add_bar(lowest, first - 1);
  for (int binade = first; binade <= last; binade += step) {
    add_bar(binade, std::min(binade + step - 1, last));
  }
  if (highest > last) add_bar(last + 1, highest);
  return bars;
}

std::string histogram_text(std::span<const HistogramBar> bars, std::size_t width) {
  double most = 0.0;
  std::size_t label_width = 0;
  for (const HistogramBar& bar : bars) {
    most = std::max(most, bar.share);
    label_width = std::max(label_width, label_of(bar).size());
  }
  constexpr std::size_t kShareWidth = 11;  // two blanks, "100.00 %", one blank
  const std::size_t bar_width = width - std::min(width - 1, label_width + kShareWidth + 2);
  std::string text;
  for (const HistogramBar& bar : bars) {
    const std::string label = label_of(bar);
    text += "  " + std::string(label_width - label.size(), ' ') + label +
            format("  %6.2f %% ", 100.0 * bar.share) + drawn(bar.share / most, bar_width) + "\n";
  }
  return text;
}

}  // namespace leeway::tools::codecs
