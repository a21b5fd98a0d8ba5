// Checks of ComputeBudget::create on its options, on one rank and between ranks.
#pragma once

#include "leeway/communicator.h"
#include "leeway/compute_budget.h"
#include "leeway/status.h"

namespace leeway::internal {

inline double milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

// Returns kInvalidArgument, with the rank before the text that `format` (as in printf) makes.
[[gnu::format(printf, 2, 3)]] Status refused(Rank self, const char* format, ...);

inline CollectiveOptions exact_options(ReduceOp op, Duration deadline) {
  return {.op = op, .delivery = exact(deadline)};
}

// Collective. Returns ok if all ranks' options are valid, and equal where they must be. A rank
// whose own options are invalid takes part, so that the others hear of it at once.
Status agree_on(const ComputeBudgetOptions& options, Communicator& communicator);

}  // namespace leeway::internal
