#include "budget/threshold_search.h"

#include <algorithm>
#include <numeric>

#include "base/contracts.h"

namespace leeway::budget {
namespace {

// Longest compute time of a step.
constexpr std::int64_t kLongestNs = kLatencyMaxNs * kMicroBatchesMax;

void raise(std::int64_t& value, std::int64_t least) {
  value = std::max(value, least);
}

// Returns the micro-batch, counted from 0, at whose end candidates begin.
std::uint32_t first_end(const ThresholdSearchOptions& options, std::uint32_t micro_batches) {
  constexpr std::uint32_t kUsual = 5;
  const std::uint32_t usual = micro_batches > kUsual ? kUsual : 2 * micro_batches / 3;
  const std::uint32_t count = std::max(usual + 1, options.micro_batches_min);
  return std::min(count, micro_batches) - 1;
}

}  // namespace

ThresholdSearch::ThresholdSearch(const ThresholdSearchOptions& options)
    : options_(options),
      bounds_(2 * options.steps + 2),
      cuts_(std::size_t{options.candidates} * options.steps),
      sums_(cuts_.size() + 1) {
  LEEWAY_ASSERT(options.steps >= 1 && options.steps <= kWindowStepsMax && options.candidates >= 2);
  reset();
}

void ThresholdSearch::reset() {
  std::ranges::fill(bounds_, 0);
  negative_least() = -kLongestNs;
  std::ranges::fill(cuts_, 0);
  std::ranges::fill(sums_, 0.0);
}

std::size_t ThresholdSearch::place(std::uint32_t candidate, std::uint32_t step) const {
  return std::size_t{candidate} * options_.steps + step;
}

ThresholdSearch::Range ThresholdSearch::range() const {
  const std::int64_t least = -bounds_[bounds_.size() - 2];
  const std::int64_t most = std::ranges::max(std::span(bounds_).first(options_.steps));
  return {least, most - least, std::int64_t{options_.candidates} - 1};
}

void ThresholdSearch::add_bounds(const LatencyTable& latencies, Duration wall) {
  const std::uint32_t micro_batches = latencies.micro_batches;
  LEEWAY_ASSERT(micro_batches >= 1 && micro_batches <= kMicroBatchesMax);
  LEEWAY_ASSERT(latencies.ns.size() == std::size_t{options_.steps} * micro_batches);
  const std::uint32_t first = first_end(options_, micro_batches);
  for (std::uint32_t step = 0; step < options_.steps; ++step) {
    const auto own = latencies.ns.subspan(std::size_t{step} * micro_batches, micro_batches);
    const std::int64_t least =
        std::accumulate(own.begin(), own.begin() + first + 1, std::int64_t{0});
    const std::int64_t total = std::accumulate(own.begin() + first + 1, own.end(), least);
    const std::int64_t computed =
        latencies.computed_ns.empty() ? total : latencies.computed_ns[step];
    raise(bounds_[step], total);
    raise(bounds_[options_.steps + step], computed);
    raise(negative_least(), -least);
  }
  raise(bounds_.back(), wall.count());
}

void ThresholdSearch::add_tables(const LatencyTable& latencies) {
  const Range thresholds = range();
  for (std::uint32_t step = 0; step < options_.steps; ++step) {
    tabulate_step(
        step, thresholds,
        latencies.ns.subspan(std::size_t{step} * latencies.micro_batches, latencies.micro_batches),
        latencies.stop_share_1024);
  }
  sums_.back() += latencies.micro_batches;
}

// Fills cuts_ and sums_ of one step. One walk is enough, because both the candidates and the ends
// of micro-batches ascend.
void ThresholdSearch::tabulate_step(std::uint32_t step, const Range& range,
                                    std::span<const std::int64_t> latencies,
                                    std::optional<std::uint32_t> stop_share_1024) {
  std::size_t ended = 0;
  std::int64_t last_end = 0;
  for (std::uint32_t candidate = 0; candidate < options_.candidates; ++candidate) {
    const std::int64_t threshold = range.at(candidate);
    while (ended < latencies.size() && last_end + latencies[ended] < threshold) {
      last_end += latencies[ended++];
    }
    std::int64_t stop = last_end;
    std::size_t completed = ended;
    if (stop_share_1024 && ended < latencies.size()) {
      const std::int64_t asked = last_end + latencies[ended] * *stop_share_1024 / 1024;
      const bool given_up = *stop_share_1024 != 0 && asked >= threshold;
      stop = given_up ? asked : last_end + latencies[ended];
      completed += given_up ? 0 : 1;
    }
    const std::size_t at = place(candidate, step);
    raise(cuts_[at], stop);
    sums_[at] += static_cast<double>(completed);
  }
}

Duration ThresholdSearch::overhead() const {
  const auto computed = std::span(bounds_).subspan(options_.steps, options_.steps);
  const std::int64_t compute = std::accumulate(computed.begin(), computed.end(), std::int64_t{0});
  return Duration(std::max<std::int64_t>(0, bounds_.back() - compute) / options_.steps);
}

ThresholdChoice ThresholdSearch::evaluate(std::uint32_t candidate) const {
  const std::int64_t overhead_ns = overhead().count();
  ThresholdChoice sum{.threshold = Duration(range().at(candidate))};
  for (std::uint32_t step = 0; step < options_.steps; ++step) {
    const std::size_t at = place(candidate, step);
    const auto step_time = static_cast<double>(bounds_[step] + overhead_ns);
    const auto gain = static_cast<double>(bounds_[step] - cuts_[at]);
    const double cut = gain / step_time;
    const double kept = sums_[at] / sums_.back();
    sum.drop_rate += 1.0 - kept;
    sum.time_cut += cut;
    // If all time of a step is cut, there is nothing to divide by, and nothing of the step is kept.
    sum.effective_speedup += (cut < 1.0 ? kept / (1.0 - cut) : 0.0) - 1.0;
  }
  const auto steps = static_cast<double>(options_.steps);
  return {sum.threshold, sum.drop_rate / steps, sum.time_cut / steps,
          sum.effective_speedup / steps};
}

ThresholdChoice ThresholdSearch::choose() const {
  const auto slowest = std::span(bounds_).first(options_.steps);
  if (!(sums_.back() > 0.0) || *std::ranges::min_element(slowest) <= 0) return {};
  ThresholdChoice best = evaluate(0);
  for (std::uint32_t candidate = 1; candidate < options_.candidates; ++candidate) {
    const ThresholdChoice next = evaluate(candidate);
    if (next.effective_speedup > best.effective_speedup) best = next;
  }
  const double enough = best.effective_speedup - options_.indifference;
  for (std::uint32_t candidate = options_.candidates; options_.indifference > 0.0;) {
    const ThresholdChoice next = evaluate(--candidate);
    if (next.effective_speedup > enough) return next;
  }
  return best;
}

}  // namespace leeway::budget
