#include "support/loss_theory.h"

#include <array>
#include <cmath>

namespace leeway::sim {
namespace {

constexpr int kStates = LossChain::kStates;
using Row = LossChain::Row;
using Matrix = std::array<Row, kStates>;

Matrix transitions(const LossChain& chain) {
  Matrix matrix = chain.move;
  for (int i = 0; i < kStates; ++i) matrix[i][i] = 1 - chain.leave(i);
  return matrix;
}

Row times(const Row& row, const Matrix& matrix) {
  Row product{};
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) product[j] += row[i] * matrix[i][j];
  }
  return product;
}

double total(const Row& row) {
  double sum = 0;
  for (const double value : row) sum += value;
  return sum;
}

Row only_lost(Row row, const LossChain& chain) {
  for (int i = 0; i < kStates; ++i) row[i] *= chain.loss[i];
  return row;
}

// Returns how often a loss burst begins in each state, not normalised. A burst begins if a packet
// is received, the chain moves to its next state, and the packet there is lost.
Row burst_starts(const LossChain& chain) {
  Row received = stationary_states(chain);
  for (int i = 0; i < kStates; ++i) received[i] *= 1 - chain.loss[i];
  return only_lost(times(received, transitions(chain)), chain);
}

// The sum over lags in loss_rate_variance() ends at the first term below this bound. Terms fall
// geometrically, so all later terms together are less than rounding errors.
constexpr double kNegligible = 1e-9;
constexpr std::uint64_t kLagsMax = 10'000'000;

}  // namespace

// Computes a high power of the lazy chain by 64 squarings. The lazy chain stays with probability
// 1/2, else moves as the chain. It has the chain's stationary states, but no periods, so its powers
// converge.
Row stationary_states(const LossChain& chain) {
  Matrix power = transitions(chain);
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) power[i][j] = (power[i][j] + (i == j)) / 2;
  }
  for (int squaring = 0; squaring < 64; ++squaring) {
    const Matrix base = power;
    for (int i = 0; i < kStates; ++i) {
      power[i] = times(base[i], base);
      // Makes the row's sum 1 again, because squaring amplifies rounding errors of the sum.
      const double sum = total(power[i]);
      for (double& value : power[i]) value /= sum;
    }
  }
  return times(chain.start, power);
}

double loss_rate(const LossChain& chain) {
  return total(only_lost(stationary_states(chain), chain));
}

double joint_loss(const LossChain& chain, std::uint64_t lag) {
  if (lag == 0) return loss_rate(chain);
  const Matrix matrix = transitions(chain);
  Row row = only_lost(stationary_states(chain), chain);
  for (std::uint64_t step = 0; step < lag; ++step) row = times(row, matrix);
  return total(only_lost(row, chain));
}

double autocorrelation(const LossChain& chain, std::uint64_t lag) {
  const double rate = loss_rate(chain);
  const double variance = rate * (1 - rate);
  return variance > 0 ? (joint_loss(chain, lag) - rate * rate) / variance : 0;
}

double mean_burst(const LossChain& chain) {
  const double rate = loss_rate(chain);
  return rate / (rate - joint_loss(chain, 1));
}

double burst_probability(const LossChain& chain, std::uint64_t length) {
  const Matrix matrix = transitions(chain);
  Row row = burst_starts(chain);
  const double starts = total(row);
  for (std::uint64_t at = 1; at < length; ++at) row = only_lost(times(row, matrix), chain);
  const double this_long = total(row);
  return (this_long - total(only_lost(times(row, matrix), chain))) / starts;
}

double loss_rate_variance(const LossChain& chain, std::uint64_t packets) {
  const Matrix matrix = transitions(chain);
  const double rate = loss_rate(chain);
  const double n = static_cast<double>(packets);
  Row row = only_lost(stationary_states(chain), chain);
  double sum = rate * (1 - rate);
  for (std::uint64_t lag = 1; lag < packets && lag < kLagsMax; ++lag) {
    row = times(row, matrix);
    const double covariance = total(only_lost(row, chain)) - rate * rate;
    sum += 2 * (1 - static_cast<double>(lag) / n) * covariance;
    if (std::abs(covariance) < kNegligible * rate) break;
  }
  return sum / n;
}

}  // namespace leeway::sim
