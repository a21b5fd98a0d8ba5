#include "budget/latency_window.h"

#include <algorithm>
#include <numeric>

#include "base/contracts.h"

namespace leeway::budget {
namespace {

constexpr std::int64_t kNotRun = -1;  // a micro-batch given up after t has kNotRun - t

}  // namespace

LatencyWindow::LatencyWindow(std::uint32_t steps, std::uint32_t micro_batches)
    : steps_max_(steps), micro_batches_(micro_batches), ns_(std::size_t{steps} * micro_batches) {
  LEEWAY_ASSERT(steps >= 1 && steps <= kWindowStepsMax);
  LEEWAY_ASSERT(micro_batches >= 1 && micro_batches <= kMicroBatchesMax);
  computed_ns_.reserve(steps);
  completed_ns_.reserve(ns_.size());
}

void LatencyWindow::clear() {
  steps_ = 0;
  turn_ = 0;
  computed_ns_.clear();
  completed_ns_.clear();
}

void LatencyWindow::add_step(std::span<const std::int64_t> completed,
                             std::optional<Duration> aborted_after) {
  LEEWAY_ASSERT(!full() && completed.size() <= micro_batches_);
  const auto step = std::span(ns_).subspan(std::size_t{steps_++} * micro_batches_, micro_batches_);
  const auto rest = std::ranges::copy(completed, step.begin()).out;
  std::fill(rest, step.end(), kNotRun);
  std::int64_t computed = std::accumulate(completed.begin(), completed.end(), std::int64_t{0});
  if (aborted_after && rest != step.end()) {
    const auto aborted = std::clamp<std::int64_t>(aborted_after->count(), 0, kLatencyMaxNs);
    *rest = kNotRun - aborted;
    computed += aborted;
  }
  computed_ns_.push_back(computed);
  completed_ns_.insert(completed_ns_.end(), completed.begin(), completed.end());
}

LatencyTable LatencyWindow::table() {
  LEEWAY_ASSERT(full());
  if (completed_ns_.empty()) return {};
  for (std::int64_t& latency : ns_) {
    if (latency < 0) latency = next_completed(latency == kNotRun ? -1 : kNotRun - latency);
  }
  return {ns_, micro_batches_, computed_ns_};
}

// Returns the next completed latency above `above_ns`, or `above_ns` if there is none.
std::int64_t LatencyWindow::next_completed(std::int64_t above_ns) {
  for (std::size_t tried = 0; tried < completed_ns_.size(); ++tried) {
    const std::int64_t latency = completed_ns_[turn_];
    turn_ = (turn_ + 1) % completed_ns_.size();
    if (latency > above_ns) return latency;
  }
  return above_ns;
}

}  // namespace leeway::budget
