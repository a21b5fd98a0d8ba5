// Long-run figures of a LossChain, computed from its matrix. Tests compare measurements with them.
#pragma once

#include <cstdint>

#include "link/loss_chain.h"

namespace leeway::sim {

// Returns the share of packets in each state, in the long run.
LossChain::Row stationary_states(const LossChain& chain);

double loss_rate(const LossChain& chain);

// Returns the probability that a packet and the one `lag` >= 0 packets later are both lost.
double joint_loss(const LossChain& chain, std::uint64_t lag);

// Returns the correlation of the fates of packets `lag` apart: (joint - rate^2) / (rate - rate^2).
// It is 0 for a chain that loses nothing or everything.
double autocorrelation(const LossChain& chain, std::uint64_t lag);

// Returns the mean number of packets lost in a row: rate / (rate - joint(1)), because a burst
// begins where a loss follows a receipt.
double mean_burst(const LossChain& chain);

// Returns the probability that a burst is exactly `length` >= 1 packets long.
double burst_probability(const LossChain& chain, std::uint64_t length);

// Returns the variance of the share lost among n = `packets` packets in a row:
// rate (1 - rate) / n * (1 + 2 sum over lags k < n of (1 - k/n) autocorrelation(k)).
// The last factor is the effect of correlation on the binomial variance.
double loss_rate_variance(const LossChain& chain, std::uint64_t packets);

}  // namespace leeway::sim
