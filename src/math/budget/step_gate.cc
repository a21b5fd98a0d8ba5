#include "budget/step_gate.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::budget {

StepGate::StepGate(const StepGateOptions& options)
    : options_(options), latencies_ns_(options.micro_batches) {
  LEEWAY_ASSERT(options.micro_batches >= 1 && options.micro_batches <= kMicroBatchesMax);
  LEEWAY_ASSERT(options.micro_batches_min <= options.micro_batches);
  set_threshold(options.threshold);
}

void StepGate::set_threshold(Duration threshold) {
  LEEWAY_ASSERT(threshold > Duration(0));
  options_.threshold = threshold;
}

bool StepGate::next(Instant now) {
  return next(now, std::nullopt);
}
bool StepGate::next(Instant now, double device_s) {
  return next(now, std::optional(device_s));
}

bool StepGate::next(Instant now, std::optional<double> device_s) {
  if (!in_step_) {
    begin(now);
    return true;
  }
  read(now, /*pause=*/false);
  complete(device_s);
  const bool more = completed_ < options_.micro_batches &&
                    (completed_ < options_.micro_batches_min || !time_is_up());
  if (!more) end();
  return more;
}

bool StepGate::should_stop(Instant now) {
  if (!in_step_) return false;
  read(now, /*pause=*/false);
  const Duration after = time_ - micro_batch_start_;
  if (completed_ < options_.micro_batches_min || !time_is_up()) {
    asked_after_ = after;
    return false;
  }
  aborted_after_ = after;
  ++counts_.aborted;
  end();
  return true;
}

void StepGate::begin(Instant now) {
  if (steps_begun_ == 0) reading_ = now;
  read(now, /*pause=*/true);
  in_step_ = true;
  may_stop_ = steps_begun_ >= options_.warm_up_steps && options_.threshold != kNoThreshold;
  ++steps_begun_;
  completed_ = 0;
  step_start_ = micro_batch_start_ = time_;
  device_time_ = Duration(0);
  aborted_after_.reset();
  asked_after_.reset();
}

std::uint32_t StepGate::stop_share_1024() const {
  return asked_of_ns_ > 0.0 ? static_cast<std::uint32_t>(1024.0 * asked_ns_ / asked_of_ns_) : 0;
}

// Advances the gate's clock to the reading `now`, but by an hour at most, because a pause between
// steps may be long (an evaluation). Differences are taken without overflow, whatever the caller's
// clock.
void StepGate::read(Instant now, bool pause) {
  const bool back = now < reading_;
  std::uint64_t passed =
      static_cast<std::uint64_t>(now.ns) - static_cast<std::uint64_t>(reading_.ns);
  if (back) passed = 0;
  const bool ahead = passed > static_cast<std::uint64_t>(kLatencyMaxNs);
  if (ahead) passed = kLatencyMaxNs;
  if (back || (ahead && !pause)) ++counts_.clock_clamps;
  time_ += Duration(static_cast<std::int64_t>(passed));
  reading_ = now;
}

void StepGate::complete(std::optional<double> device_s) {
  std::int64_t latency_ns = std::min((time_ - micro_batch_start_).count(), kLatencyMaxNs);
  if (device_s) {
    const double device_ns = *device_s * 1e9;
    const bool valid = device_ns >= 0.0 && device_ns <= static_cast<double>(kLatencyMaxNs);
    if (valid) latency_ns = static_cast<std::int64_t>(device_ns);
    if (!valid) ++counts_.latency_clamps;
    device_time_ += Duration(latency_ns);
  }
  if (asked_after_) {
    asked_ns_ += static_cast<double>(asked_after_->count());
    asked_of_ns_ += static_cast<double>((time_ - micro_batch_start_).count());
    asked_after_.reset();
  }
  micro_batch_start_ = time_;
  latencies_ns_[completed_++] = latency_ns;
  shortest_ns_ = std::min(shortest_ns_, latency_ns);
}

// Returns true if the step has reached the threshold. A step that has completed nothing goes on if
// no micro-batch was ever shorter than the threshold, so that the step completes one.
bool StepGate::time_is_up() const {
  if (!may_stop_ || std::max(time_ - step_start_, device_time_) < options_.threshold) return false;
  return completed_ > 0 || shortest_ns_ < options_.threshold.count();
}

void StepGate::end() {
  in_step_ = false;
  ++counts_.steps;
  counts_.planned += options_.micro_batches;
  counts_.completed += completed_;
  counts_.dropped += options_.micro_batches - completed_;
  if (completed_ == options_.micro_batches) return;
  ++counts_.steps_stopped;
  if (shortest_ns_ >= options_.threshold.count()) ++counts_.threshold_clamps;
}

}  // namespace leeway::budget
