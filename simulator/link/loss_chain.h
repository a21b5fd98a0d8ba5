// A Markov chain that loses packets. Independent losses, Gilbert-Elliott, four states and bursts
// all have this form. markov_loss.h runs it.
//
// A packet is lost with its state's probability; then the chain moves.
#pragma once

#include <array>

#include "link/loss_options.h"

namespace leeway::sim {

struct LossChain {
  static constexpr int kStates = 4;  // unused ones have no way in
  using Row = std::array<double, kStates>;

  Row loss{};  // P(packet is lost | state)
  // P(next state | state) of states other than the present one; the rest is the probability of
  // staying.
  std::array<Row, kStates> move{};
  Row start{1.0};  // state of the first packet

  double leave(int state) const;
};

// Leaves out the correlation, which is not a chain of this kind.
LossChain chain_of(const RandomLoss& options);
LossChain chain_of(const GilbertElliott& options);
LossChain chain_of(const FourState& options);
LossChain chain_of(const BurstLoss& options);

}  // namespace leeway::sim
