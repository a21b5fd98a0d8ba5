#include "programs/lossy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "programs/values.h"

namespace leeway::programs {
namespace {

// Bound on the factor by which estimators scale contributions for the links' loss rates. Real
// factors are far smaller.
constexpr double kScaleMax = 1e6;
// Contributions may cancel out, so that an element is 0. But this many elements in a row that are 0
// must be missing ones.
constexpr std::size_t kZerosMin = 8;

using Values = std::array<double, kRanksMax>;

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b));
}

// Decides whether an estimator can give a value for an element if some contributions are lost.
class Estimates {
 public:
  Estimates(const Step& step, int size, bool sites)
      : step_(step),
        size_(size),
        sites_(sites),
        unit_(step.op == ReduceOp::avg ? 1.0 / size : 1.0) {}

  // Returns true if the estimator uses the links' loss rates. Its result may then be any sum of
  // scaled contributions.
  bool by_rates() const {
    return step_.estimator == Estimator::horvitz_thompson ||
           step_.estimator == Estimator::augmented;
  }

  // Returns true if the estimator gives `got` for the contributions of some set of ranks. `of` has
  // all ranks' contributions.
  bool explain(double got, const Values& of) {
    if (!std::isfinite(got)) return false;
    if (by_rates()) return explain_by_rates(got, of);
    if (sites_ && step_.op == ReduceOp::avg) return explain_by_units(got, of);
    // All elements of a packet lack the same ranks, so the set of the element before is tried
    // first.
    if (matches(got, of, last_)) return true;
    for (unsigned ranks = 1; ranks < 1u << size_; ++ranks) {
      if (!matches(got, of, ranks)) continue;
      last_ = ranks;
      return true;
    }
    return false;
  }

 private:
  // Checks `got` against limits. The lower limit holds because the owner's contribution always
  // arrives and is not scaled. It does not hold for `augmented`, which has a control variate.
  bool explain_by_rates(double got, const Values& of) const {
    const auto [least, most] = std::minmax_element(of.begin(), of.begin() + size_);
    if (std::abs(got) > kScaleMax * *most) return false;
    return step_.estimator == Estimator::augmented || got >= 0.9999 * unit_ * *least;
  }

  // Checks averages by sites, which weigh each site's mean by the units of work that arrived there.
  // It lies between the least and the greatest contribution. Zero fill divides by the units of all
  // sites, whether their means arrived or not, so it may give less.
  bool explain_by_units(double got, const Values& of) const {
    const auto [least, most] = std::minmax_element(of.begin(), of.begin() + size_);
    const double part = step_.estimator == Estimator::zero_fill ? unit_ : 1.0;
    return got >= 0.9999 * part * *least && got <= 1.0001 * *most;
  }

  bool matches(double got, const Values& of, unsigned ranks) const {
    const double sum = total(of, ranks);
    const int count = std::popcount(ranks);
    if (sites_ && near(got, unit_ * by_sites(of, ranks))) return true;
    switch (step_.estimator) {
      case Estimator::zero_fill:
        return near(got, unit_ * sum);
      case Estimator::stratified:
        for (int owner = 0; owner < size_; ++owner) {
          if ((ranks >> owner & 1) == 0) continue;
          const double own = of[static_cast<std::size_t>(owner)];
          const double others = count == 1 ? own : (sum - own) / (count - 1);
          if (near(got, unit_ * (own + (size_ - 1) * others))) return true;
        }
        return false;
      default:
        return near(got, unit_ * sum * size_ / count);
    }
  }

  double total(const Values& of, unsigned ranks) const {
    double sum = 0.0;
    for (int rank = 0; rank < size_; ++rank)
      if ((ranks >> rank & 1) != 0) sum += of[static_cast<std::size_t>(rank)];
    return sum;
  }

  // Returns the result by sites. Within a site the ranks that arrived stand for all its ranks. The
  // sites that arrived stand for all sites, except with zero fill.
  double by_sites(const Values& of, unsigned ranks) const {
    const int half = size_ / 2;
    double sum = 0.0;
    int there = 0;
    for (int site = 0; site < 2; ++site) {
      const unsigned own = ranks & ((1u << half) - 1) << (site * half);
      if (own == 0) continue;
      sum += total(of, own) * half / std::popcount(own);
      ++there;
    }
    return step_.estimator == Estimator::zero_fill ? sum : sum * 2 / there;
  }

  const Step& step_;
  const int size_;
  const bool sites_;
  const double unit_;
  unsigned last_ = 1;
};

template <typename... Parts>
std::string text(const char* format, Parts... parts) {
  char line[200];
  std::snprintf(line, sizeof line, format, parts...);
  return line;
}

}  // namespace

std::string lossy_difference(const LossyResult& result) {
  const Step& step = result.step;
  const CollectiveReport& report = result.report;
  Estimates estimates(step, result.size, report.sites > 0);
  const Extent extent = extent_of(step, result.rank, result.size);
  const std::size_t first = step.kind == Kind::reduce_scatter
                                ? extent.input_begins[static_cast<std::size_t>(result.rank)]
                                : 0;
  const bool lossy_spread = step.kind == Kind::all_reduce && step.spread != Delivery::Kind::exact;
  const bool stays = step.spread == Delivery::Kind::best_effort;
  std::size_t missing = 0;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < result.got.count(); ++i) {
    const double got = result.got.get(i);
    const bool lost_all = step.estimator == Estimator::symmetric_ratio && got == 0.0;
    zeros = got == 0.0 ? zeros + 1 : 0;
    if (step.estimator == Estimator::augmented && zeros >= kZerosMin && !stays)
      missing += zeros == kZerosMin ? kZerosMin : 1;
    if (near(got, result.whole.get(i))) continue;
    Values of{};
    for (int rank = 0; rank < result.size; ++rank)
      of[static_cast<std::size_t>(rank)] = contribution(step, rank, first + i);
    if (lost_all || estimates.explain(got, of)) continue;
    const bool left =
        got == (stays ? result.before.get(i) : 0.0) || (report.sites > 0 && got == 0.0);
    if (!left || !lossy_spread)
      return text("element %zu of %zu is %g, which no contributions give; all of them give %g", i,
                  result.got.count(), got, result.whole.get(i));
    ++missing;
  }
  if (missing > report.elements_missing)
    return text("%zu of %zu elements are missing, and the report says %llu", missing,
                result.got.count(), static_cast<unsigned long long>(report.elements_missing));
  if (!lossy_spread && report.elements_missing > 0)
    return text("an exact spread with %llu elements missing",
                static_cast<unsigned long long>(report.elements_missing));
  if (report.complete != (report.elements_missing == 0) && report.sites == 0)
    return text("complete is %d with %llu elements missing", report.complete ? 1 : 0,
                static_cast<unsigned long long>(report.elements_missing));
  return {};
}

}  // namespace leeway::programs
