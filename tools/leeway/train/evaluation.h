// Computes the validation perplexity of a group, in which each rank uses its own replica of the
// model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "train/model.h"

namespace leeway::tools::train {

// Limit on the windows to be scored: about 33,000 characters with the default context. A run and
// its twin score the same windows, so this many are enough to show a difference of 0.1 %. Scoring
// them takes a second.
inline constexpr std::size_t kValidationWindowsMax = 512;

// Returns where the windows of `rank` begin. Windows are disjoint and evenly spaced over the text,
// and go to the ranks in turn.
std::vector<std::size_t> validation_starts(std::size_t tokens, std::size_t window, int rank,
                                           int ranks);

// Returns exp(nats_sum / windows): `nats_sum` is the sum of the windows' losses, which have equal
// weight.
double perplexity(double nats_sum, double windows);

// Every rank scores its windows with its own replica, stale values included. Sums are exchanged
// exactly, so all ranks return the same number.
Result<double> validation_perplexity(Communicator& communicator, Gpt& model,
                                     std::span<const std::uint8_t> tokens, std::size_t window);

}  // namespace leeway::tools::train
