#include "precision.h"

#include <algorithm>

namespace leeway::lab {

std::uint64_t TimeHistogram::begin_of(std::size_t number) {
  if (number < kParts) return number;
  return (kParts + number % kParts) << (number / kParts - 1);
}

std::int64_t TimeHistogram::quantile_ns(double share) const {
  const double wanted = share * static_cast<double>(total_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i + 1 < kClasses; ++i) {
    seen += counts_[i];
    if (seen > 0 && static_cast<double>(seen) >= wanted) {
      return std::min(static_cast<std::int64_t>(begin_of(i + 1)), max_ns_);
    }
  }
  return max_ns_;
}

std::uint64_t TimeHistogram::count_from(std::int64_t ns) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (begin_of(i) >= static_cast<std::uint64_t>(ns)) count += counts_[i];
  }
  return count;
}

namespace {

double share_of_late(const TimeHistogram& times) {
  if (times.total() == 0) return 0;
  return static_cast<double>(times.count_from(kLateNs)) / static_cast<double>(times.total());
}

}  // namespace

double Precision::late_share() const {
  return std::max(share_of_late(intake), share_of_late(late));
}

}  // namespace leeway::lab
