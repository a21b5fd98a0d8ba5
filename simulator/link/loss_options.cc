#include "link/loss_options.h"

#include <cinttypes>
#include <cstddef>

#include "link/parameter_check.h"

namespace leeway::sim {
namespace {

// Checks the probabilities of leaving one state of a chain. Their sum must be at most 1.
Status check_exits(const char* names, double sum) {
  if (sum <= 1.0) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "four_state %s=%g: the exits of a state sum to at most 1", names, sum);
}

Status check(const NoLoss&) {
  return {};
}

Status check(const RandomLoss& random) {
  return both(check_probability("random.loss", random.loss),
              check_probability("random.correlation", random.correlation));
}

Status check(const GilbertElliott& chain) {
  return both(both(check_probability("gilbert_elliott.p", chain.p),
                   check_probability("gilbert_elliott.r", chain.r)),
              both(check_probability("gilbert_elliott.one_minus_h", chain.one_minus_h),
                   check_probability("gilbert_elliott.one_minus_k", chain.one_minus_k)));
}

Status check(const FourState& chain) {
  Status status = both(both(check_probability("four_state.p13", chain.p13),
                            check_probability("four_state.p31", chain.p31)),
                       both(check_probability("four_state.p32", chain.p32),
                            check_probability("four_state.p23", chain.p23)));
  status = both(status, check_probability("four_state.p14", chain.p14));
  status = both(status, check_exits("p13+p14", chain.p13 + chain.p14));
  return both(status, check_exits("p31+p32", chain.p31 + chain.p32));
}

Status check(const BurstLoss& bursts) {
  if (!(bursts.burst >= 1.0 && bursts.burst <= kBurstMax)) {  // NaN fails, too
    return Status::error(StatusCode::kInvalidArgument,
                         "bursts.burst=%g: a mean burst is 1 to %g packets", bursts.burst,
                         kBurstMax);
  }
  return check_probability("bursts.loss", bursts.loss);
}

Status check(const EveryLoss& every) {
  return check_count("every.n", every.n, 1, UINT64_MAX);
}

Status check(const ListLoss& list) {
  for (std::size_t i = 1; i < list.numbers.size(); ++i) {
    if (list.numbers[i] > list.numbers[i - 1]) continue;
    return Status::error(StatusCode::kInvalidArgument,
                         "list.numbers[%zu]=%" PRIu64 ": expected more than %" PRIu64
                         ", the number before it",
                         i, list.numbers[i], list.numbers[i - 1]);
  }
  return {};
}

Status check(const WindowLoss& down) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < down.windows.size(); ++i) {
    const DownTime window = down.windows[i];
    if (window.from_ns < end || window.until_ns <= window.from_ns) {
      return Status::error(StatusCode::kInvalidArgument,
                           "windows[%zu]=%" PRId64 " to %" PRId64
                           " ns: expected a start of %" PRId64 " or later and an end after it",
                           i, window.from_ns, window.until_ns, end);
    }
    end = window.until_ns;
  }
  return {};
}

Status check(const TraceLoss& trace) {
  if (!trace.lost.empty()) return {};
  return Status::error(StatusCode::kInvalidArgument, "trace.lost is empty: expected 1 packet");
}

Status check(const SizeLoss& size) {
  return check_count("size.max_bytes", size.max_bytes, 1, UINT32_MAX);
}

}  // namespace

Status check_loss(const LossOptions& options) {
  return std::visit([](const auto& model) { return check(model); }, options);
}

}  // namespace leeway::sim
