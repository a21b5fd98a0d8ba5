// Bursty loss as a pure function of a packet's place in its flow.
//
// A stationary two-state Gilbert chain with loss rate p and mean burst B has the transitions
//   P(good -> bad) = p / (B (1 - p)),  P(bad -> good) = 1 / B.
// An equivalent form: at every position, with probability h = 1 - 1 / (B (1 - p)) the state is
// *held* from the position before, otherwise it is *redrawn* and is bad with probability p. (Check:
// staying bad has probability h + (1 - h) p = 1 - 1/B.) So the state at a position is the outcome
// of the last redraw at or before it. Keyed hashes alone find that redraw, on average by a walk
// back over B (1 - p) positions. So the answer for a position does not depend on which positions
// were asked about before, or on which machine. Position 0 is always a redraw, so the chain is
// stationary from the start.
//
// Independent losses have a mean burst of 1 / (1 - p). If B is smaller than that, losses are made
// independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/types.h"

namespace leeway::impairment {

// One pass over one flow.
struct FlowAddress {
  Rank source = kNoRank;
  Rank destination = kNoRank;
  std::uint32_t round = 0;
  std::uint8_t phase = 0;
  std::uint16_t attempt = 0;

  friend bool operator==(const FlowAddress&, const FlowAddress&) = default;
};

class GilbertLoss {
 public:
  // `burst` is the mean length of a burst in packets, >= 1.
  GilbertLoss(std::uint64_t seed, double burst);

  // Returns whether the packet at `position` is lost on a flow with loss rate `rate`. The answer
  // depends only on the arguments and the seed. Calls with rising positions of a flow cost one hash
  // for each position, because the last answer is remembered.
  bool lost(const FlowAddress& flow, std::uint32_t position, double rate);

 private:
  struct Answer {
    FlowAddress flow;  // has source kNoRank in an unused entry
    std::uint32_t position = 0;
    bool bad = false;
  };
  double draw(const FlowAddress& flow, std::uint32_t position) const;
  Answer& answer_of(const FlowAddress& flow);

  std::uint64_t seed_;
  double burst_;
  std::vector<Answer> answers_;
};

}  // namespace leeway::impairment
