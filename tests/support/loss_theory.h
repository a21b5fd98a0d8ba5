// Long-run figures of a LossChain, in closed form over its matrix, for comparison with a run. Plain
// double arithmetic outside the event path.
#pragma once

#include <cstdint>

#include "link/loss_chain.h"

namespace leeway::sim {

// Share of packets in each state once the start is forgotten.
LossChain::Row stationary_states(const LossChain& chain);

// Share of packets lost.
double loss_rate(const LossChain& chain);

// P(a packet and the one `lag` packets later are both lost). lag >= 0.
double joint_loss(const LossChain& chain, std::uint64_t lag);

// Correlation of the fates of packets `lag` apart: (joint - rate^2) / (rate - rate^2). Zero for a
// chain that loses nothing or everything.
double autocorrelation(const LossChain& chain, std::uint64_t lag);

// Mean number of packets lost in a row. A burst begins where a loss follows a receipt, so it is
// rate / (rate - joint(1)).
double mean_burst(const LossChain& chain);

// P(a burst is exactly `length` packets long). length >= 1.
double burst_probability(const LossChain& chain, std::uint64_t length);

// Variance of the share lost among n packets in a row:
// rate (1 - rate) / n * (1 + 2 sum over lags k < n of (1 - k/n) autocorrelation(k)).
// The factor in brackets is what correlation adds to the binomial variance.
double loss_rate_variance(const LossChain& chain, std::uint64_t packets);

}  // namespace leeway::sim
