// A Markov chain that loses packets. Independent losses, Gilbert-Elliott, four states and bursts
// are all of this form. MarkovLoss draws from it.
//
// A packet is lost with the probability of the present state; then the chain changes state.
#pragma once

#include <array>

#include "link/loss_options.h"

namespace leeway::sim {

struct LossChain {
  static constexpr int kStates = 4;  // unused ones have no way in
  using Row = std::array<double, kStates>;

  Row loss{};  // P(packet is lost | state)
  // P(next state | state) for changes to another state. The rest of a row up to 1 is the
  // probability of staying.
  std::array<Row, kStates> move{};
  Row start{1.0};  // state of the first packet

  double leave(int state) const;
};

// Ignores RandomLoss::correlation, because no LossChain can express it.
LossChain chain_of(const RandomLoss& options);
LossChain chain_of(const GilbertElliott& options);
LossChain chain_of(const FourState& options);
LossChain chain_of(const BurstLoss& options);

}  // namespace leeway::sim
