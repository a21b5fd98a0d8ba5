// Long-run figures of a LossChain, computed from its matrix, with which measurements are compared.
#pragma once

#include <cstdint>

#include "link/loss_chain.h"

namespace leeway::sim {

// Returns the share of packets in each state, in the long run.
LossChain::Row stationary_states(const LossChain& chain);

double loss_rate(const LossChain& chain);

// P(a packet and the one `lag` packets later are both lost). lag >= 0.
double joint_loss(const LossChain& chain, std::uint64_t lag);

// Correlation of the fates of packets `lag` apart: (joint - rate^2) / (rate - rate^2). Zero for a
// chain that loses nothing or everything.
double autocorrelation(const LossChain& chain, std::uint64_t lag);

// Returns the mean number of packets lost in a row: rate / (rate - joint(1)), because a burst
// begins where a loss follows a receipt.
double mean_burst(const LossChain& chain);

// P(a burst is exactly `length` packets long). length >= 1.
double burst_probability(const LossChain& chain, std::uint64_t length);

// Variance of the share lost among n packets in a row:
// rate (1 - rate) / n * (1 + 2 sum over lags k < n of (1 - k/n) autocorrelation(k)).
// The last factor is what correlation adds to the binomial variance.
double loss_rate_variance(const LossChain& chain, std::uint64_t packets);

}  // namespace leeway::sim
