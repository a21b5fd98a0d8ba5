#include "link/markov_loss.h"

#include <algorithm>
#include <cstddef>

#include "base/contracts.h"

namespace leeway::sim {
namespace {

using Cumulative = std::array<Probability, LossChain::kStates>;

// Returns cumulative probabilities. The last weight above zero also gets what rounding leaves.
Cumulative cumulative(const LossChain::Row& weights, double total) {
  Cumulative below;
  double sum = 0;
  int last = 0;
  for (int i = 0; i < LossChain::kStates; ++i) {
    sum += weights[i];
    if (weights[i] > 0) last = i;
    if (total > 0) below[i] = Probability::of(std::min(sum / total, 1.0));
  }
  std::fill(below.begin() + last, below.end(), Probability::always());
  return below;
}

// Returns how many states need tables: all up to the last one that can be entered. A state's table
// takes a kilobyte.
int count_states(const LossChain& chain) {
  int count = 1;
  for (int to = 1; to < LossChain::kStates; ++to) {
    bool entered = chain.start[to] > 0;
    for (const LossChain::Row& row : chain.move) entered |= row[to] > 0;
    if (entered) count = to + 1;
  }
  return count;
}

}  // namespace

MarkovLoss::MarkovLoss(RandomStream random, const LossChain& chain)
    : random_(random), tables_(tables_of(chain)) {
  enter(pick(tables_->start));
}

MarkovLoss::MarkovLoss(RandomStream random, const MarkovLoss& like)
    : random_(random), tables_(like.tables_) {
  enter(pick(tables_->start));
}

std::shared_ptr<const MarkovLoss::Tables> MarkovLoss::tables_of(const LossChain& chain) {
  auto tables = std::make_shared<Tables>();
  tables->start = cumulative(chain.start, 1);
  const int states = count_states(chain);
  tables->states.reserve(static_cast<std::size_t>(states));
  for (int i = 0; i < states; ++i) tables->states.push_back(state_of(chain, i));
  return tables;
}

MarkovLoss::State MarkovLoss::state_of(const LossChain& chain, int state) {
  const double leave = chain.leave(state);
  LossChain::Row exits = chain.move[state];
  exits[state] = 0;
  return {GeometricDistance(Probability::of(chain.loss[state])),
          GeometricDistance(Probability::of(leave)), cumulative(exits, leave)};
}

bool MarkovLoss::step() {
  if (stay_ == 0) enter(pick(tables_->states[state_].next));
  if (quiet_ > 0) {
    --quiet_;
    return false;
  }
  LEEWAY_ASSERT(stay_ > 0 && gap_ == 0);
  --stay_;
  gap_ = tables_->states[state_].loss.draw(random_);
  plan();
  return true;
}

void MarkovLoss::enter(int state) {
  state_ = state;
  const std::uint64_t more = tables_->states[state].leave.draw(random_);
  stay_ = std::max(more, more + 1);  // "never left" must not overflow
  gap_ = tables_->states[state].loss.draw(random_);
  plan();
}

void MarkovLoss::plan() {
  quiet_ = std::min(stay_, gap_);
  stay_ -= quiet_;
  gap_ -= quiet_;
}

int MarkovLoss::pick(const Cumulative& below) {
  const std::uint64_t draw = random_.u64() >> 1;
  int state = 0;
  while (draw >= below[state].f63() && state + 1 < LossChain::kStates) ++state;
  return state;
}

}  // namespace leeway::sim
