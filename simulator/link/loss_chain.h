// A Markov chain that loses packets: the common form of independent losses, Gilbert-Elliott, the
// four states and bursts, both for the run (markov_loss.h) and for its theory (loss_theory.h).
//
// A packet is lost with its state's probability; then the chain moves.
#pragma once

#include <array>

#include "link/loss_options.h"

namespace leeway::sim {

struct LossChain {
  static constexpr int kStates = 4;  // unused ones have no way in
  using Row = std::array<double, kStates>;

  Row loss{};                       // P(packet is lost | state)
  std::array<Row, kStates> move{};  // P(next state | state) of different states; the rest stays
  Row start{1.0};                   // state of the first packet

  double leave(int state) const;
};

LossChain chain_of(const RandomLoss& options);  // its correlation left out: that is no such chain
LossChain chain_of(const GilbertElliott& options);
LossChain chain_of(const FourState& options);
LossChain chain_of(const BurstLoss& options);

}  // namespace leeway::sim
