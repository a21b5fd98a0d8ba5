// Validation perplexity of a group of ranks, each with its present copy of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "train/model.h"

namespace leeway::tools::train {

// Most windows of the validation text that are scored: about 33,000 characters with the default
// context. A run and its twin are scored on the same windows, so this is enough to tell them apart
// at 0.1 %, and takes a second.
inline constexpr std::size_t kValidationWindowsMax = 512;

// Starts of the windows that `rank` scores: evenly spaced over the text, disjoint, dealt out in
// turn.
std::vector<std::size_t> validation_starts(std::size_t tokens, std::size_t window, int rank,
                                           int ranks);

// exp of the mean loss over all windows: total nats divided by the number of windows. All windows
// have equal weight.
double perplexity(double nats_sum, double windows);

// Every rank scores its windows with its own replica, stale values included. The sums are added
// exactly, so all ranks return the same number.
Result<double> validation_perplexity(Communicator& communicator, Gpt& model,
                                     std::span<const std::uint8_t> tokens, std::size_t window);

}  // namespace leeway::tools::train
