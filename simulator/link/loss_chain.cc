#include "link/loss_chain.h"

#include <algorithm>

namespace leeway::sim {

double LossChain::leave(int state) const {
  double sum = 0;
  for (int to = 0; to < kStates; ++to) {
    if (to != state) sum += move[state][to];
  }
  return std::min(sum, 1.0);
}

LossChain chain_of(const RandomLoss& options) {
  LossChain chain;
  chain.loss[0] = options.loss;
  return chain;
}

LossChain chain_of(const GilbertElliott& options) {
  LossChain chain;
  chain.loss = {options.one_minus_k, options.one_minus_h};
  chain.move[0][1] = options.p;
  chain.move[1][0] = options.r;
  return chain;
}

// Converts netem's states 1 to 4 to states 0 to 3. netem changes state before every packet, so the
// first packet is sent in a state that follows netem's state 1.
LossChain chain_of(const FourState& options) {
  LossChain chain;
  chain.loss = {0, 0, 1, 1};
  chain.move[0] = {0, 0, options.p13, options.p14};
  chain.move[1] = {0, 0, options.p23, 0};
  chain.move[2] = {options.p31, options.p32, 0, 0};
  chain.move[3] = {1, 0, 0, 0};
  chain.start = {1 - (options.p13 + options.p14), 0, options.p13, options.p14};
  return chain;
}

// A bad state that loses every packet. It is left with probability r, so its mean burst is 1/r; it
// is entered with p such that its share of packets, p / (p + r), is the loss ratio.
LossChain chain_of(const BurstLoss& options) {
  const double received = 1 - options.loss;
  if (options.burst * received <= 1) return chain_of(RandomLoss{options.loss});
  const double r = 1 / options.burst;
  return chain_of(GilbertElliott{options.loss * r / received, r, 1, 0});
}

}  // namespace leeway::sim
