// Validation perplexity of a group of ranks, each with its own copy of the model as it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "train/model.h"

namespace leeway::tools::train {

// Windows of the validation text that are scored, at most. About 33,000 characters with the default
// context: enough that a run and its twin, scored on the same ones, are told apart at 0.1 %, for a
// second of computing.
inline constexpr std::size_t kValidationWindowsMax = 512;

// Starts of the windows that `rank` scores: evenly spaced over the text, disjoint, dealt out in
// turn.
std::vector<std::size_t> validation_starts(std::size_t tokens, std::size_t window, int rank,
                                           int ranks);

// exp of the mean loss over all windows: total nats over the number of windows, each window
// weighing the same.
double perplexity(double nats_sum, double windows);

// Every rank scores its windows with its own replica, stale values included; the sums are added
// exactly, so that all ranks return the same number.
Result<double> validation_perplexity(Communicator& communicator, Gpt& model,
                                     std::span<const std::uint8_t> tokens, std::size_t window);

}  // namespace leeway::tools::train
