// Draws losses from a LossChain. At the begin of a state it draws how long the state lasts and how
// far the next loss is. So most packets cost one decrement.
//
// Both distances are geometric, hence memoryless, so a change of state may discard the distance to
// the next loss.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/geometric.h"
#include "engine/probability.h"
#include "engine/random_stream.h"
#include "link/loss_chain.h"

namespace leeway::sim {

class MarkovLoss {
 public:
  MarkovLoss(RandomStream random, const LossChain& chain);
  // Makes another object for the same chain, with other draws. It starts anew and shares the
  // tables.
  MarkovLoss(RandomStream random, const MarkovLoss& like);

  bool lost(std::int64_t, std::uint32_t) {
    if (quiet_ == 0) [[unlikely]]
      return step();
    --quiet_;
    return false;
  }

 private:
  using Cumulative = std::array<Probability, LossChain::kStates>;
  struct State {
    GeometricDistance loss;
    GeometricDistance leave;
    Cumulative next;  // P(this state or one before it | a move)
  };
  // Takes a kilobyte for each state, so links with the same chain share it.
  struct Tables {
    Cumulative start;
    std::vector<State> states;
  };
  static State state_of(const LossChain& chain, int state);
  static std::shared_ptr<const Tables> tables_of(const LossChain& chain);

  bool step();
  void enter(int state);
  void plan();
  int pick(const Cumulative& below);

  RandomStream random_;
  std::shared_ptr<const Tables> tables_;
  int state_ = 0;
  std::uint64_t quiet_ = 0;  // packets that are certainly received
  std::uint64_t stay_ = 0;   // packets that follow in this state after the quiet ones
  std::uint64_t gap_ = 0;    // packets between the quiet ones and the next loss, if the state lasts
};

}  // namespace leeway::sim
