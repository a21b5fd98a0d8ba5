#include "communicator/compute_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "budget/threshold_agreement.h"

namespace leeway::internal {
namespace {

using budget::kMicroBatchesMax;
using budget::kWindowStepsMax;
using budget::ThresholdAgreement;

// Least deadline of the check between ranks, because some ranks start late.
constexpr Duration kPatience = std::chrono::seconds(1);

Status validate(Rank self, const ComputeBudgetOptions& options) {
  if (options.micro_batches < 1 || options.micro_batches > kMicroBatchesMax) {
    return refused(self, "micro_batches is %u; give the micro-batches of a step, 1 .. %u",
                   options.micro_batches, kMicroBatchesMax);
  }
  if (options.micro_batches_min > options.micro_batches) {
    return refused(self, "micro_batches_min %u is more than micro_batches %u",
                   options.micro_batches_min, options.micro_batches);
  }
  const bool automatic = options.threshold.kind == ComputeThreshold::Kind::automatic;
  if (options.threshold.kind == ComputeThreshold::Kind::fixed &&
      options.threshold.value <= Duration(0)) {
    return refused(
        self,
        "threshold %.3f ms is not above zero; give the time a step may compute, or auto_threshold",
        milliseconds(options.threshold.value));
  }
  const bool none = options.window_steps == 0 && !automatic;
  if (!none && (options.window_steps < ThresholdAgreement::kWindowStepsMin ||
                options.window_steps > kWindowStepsMax)) {
    return refused(self, "window_steps %u is outside %u .. %u%s", options.window_steps,
                   ThresholdAgreement::kWindowStepsMin, kWindowStepsMax,
                   automatic ? "" : " (0: no exchange)");
  }
  if (!std::isfinite(options.drift_tolerance) || options.drift_tolerance < 0.0) {
    return refused(self, "drift_tolerance %g is not a number from 0 on", options.drift_tolerance);
  }
  if (options.exchange_deadline <= Duration(0)) {
    return refused(self, "exchange_deadline %.3f ms is not above zero",
                   milliseconds(options.exchange_deadline));
  }
  return Status();
}

// Options that must be equal on all ranks.
struct Agreed {
  const char* name;
  double (*value)(const ComputeBudgetOptions&);
};
template <auto kMember>
double number(const ComputeBudgetOptions& options) {
  return static_cast<double>(options.*kMember);
}
constexpr Agreed kAgreed[] = {
    {"threshold (0 none, 1 automatic, 2 fixed)",
     [](const ComputeBudgetOptions& options) {
       return static_cast<double>(options.threshold.kind);
     }},
    {"warm_up_steps", number<&ComputeBudgetOptions::warm_up_steps>},
    {"normalisation", number<&ComputeBudgetOptions::normalisation>},
    {"compensation", number<&ComputeBudgetOptions::compensation>},
    {"window_steps", number<&ComputeBudgetOptions::window_steps>},
    {"reestimate_steps", number<&ComputeBudgetOptions::reestimate_steps>},
    {"drift_tolerance", number<&ComputeBudgetOptions::drift_tolerance>},
};
constexpr std::size_t kCount = std::size(kAgreed);

}  // namespace

Status refused(Rank self, const char* format, ...) {
  std::array<char, Status::kTextMax + 1> text;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return Status::error(StatusCode::kInvalidArgument, "rank %u: ComputeBudget: %s", self,
                       text.data());
}

Status agree_on(const ComputeBudgetOptions& options, Communicator& communicator) {
  const Rank self = communicator.rank();
  const Status own = validate(self, options);
  // The ranks reduce these values by max. They are each option and its negative, which give the
  // largest and the smallest value, and last this rank if it refuses its options, else -1.
  std::array<double, 2 * kCount + 1> largest;
  for (std::size_t i = 0; i < kCount; ++i) {
    largest[2 * i] = kAgreed[i].value(options);
    largest[2 * i + 1] = -largest[2 * i];
  }
  largest.back() = own.ok() ? -1.0 : self;
  const auto report = communicator.all_reduce(
      std::span(largest),
      exact_options(ReduceOp::max, std::max(options.exchange_deadline, kPatience)));
  if (!own.ok()) return own;
  if (!report.ok()) return report.status();
  if (largest.back() >= 0.0) {
    return refused(self, "rank %.0f refused its options; see there", largest.back());
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const double most = largest[2 * i];
    const double least = -largest[2 * i + 1];
    if (least == most) continue;
    return Status::error(StatusCode::kMismatch,
                         "rank %u: ComputeBudget: %s is %g here, and from %g to %g on the ranks; "
                         "give all the same",
                         self, kAgreed[i].name, kAgreed[i].value(options), least, most);
  }
  return Status();
}

}  // namespace leeway::internal
