// How the ranks of a communicator agree on its datagram length (WIRE 10.4). Records the length
// ("size") that each rank has told, and which ranks have acknowledged this rank's size. Says which
// rank to ask next; sends nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/types.h"

namespace leeway::collective {

class SizeAgreement {
 public:
  SizeAgreement(Rank self, std::size_t ranks) : self_(self), sizes_(ranks), knows_(ranks) {}

  // Longest datagram that all of this rank's paths carry; 0 if not known.
  std::uint16_t own() const { return sizes_[self_]; }
  // Returns the least size of all ranks, or nullopt until all have told theirs.
  std::optional<std::size_t> agreed_bytes() const;
  // The other ranks that have not told their size.
  std::vector<Rank> untold() const;
  // Returns true if each peer has acknowledged this rank's size, or is_gone(rank). Also true if
  // this rank has no size, since ranks do not ask each other then.
  template <typename IsGone>
  bool known_to_all(IsGone&& is_gone) const {
    for (Rank rank = 0; rank < sizes_.size() && own() != 0; ++rank) {
      if (rank != self_ && !knows_[rank] && !is_gone(rank)) return false;
    }
    return true;
  }

  // Begins to ask all ranks that have not told their size. `own`: this rank's size; 0 if it is not
  // known or was told already. A size that becomes known is told to all ranks, and never changes.
  void ask(std::size_t own);
  // Begins to tell this rank's size again to the ranks that have not acknowledged it.
  void tell();
  // Returns the next rank to which a question must be sent, or kNoRank. `number`: the question's
  // number, which must be higher than those of the process's earlier questions.
  Rank next(std::uint32_t number);

  void on_told(Rank from, std::uint16_t bytes);
  // Call it when the rank answered question `number`. The rank has acknowledged this rank's size if
  // that question, or one before it, told the size. `latest`: number of the process's latest
  // question.
  void on_acknowledged(Rank from, std::uint32_t number, std::uint32_t latest);

 private:
  Rank self_;
  std::vector<std::uint16_t> sizes_;  // by rank; 0 if not known
  std::vector<bool> knows_;           // by rank: it has acknowledged this one's size
  Rank asked_ = 0;                    // ranks below were asked for their size
  bool told_ = false;                 // all ranks that may not know this one's size were told it
  // Number of the first question that told this rank's size; 0 if none did.
  std::uint32_t first_told_ = 0;
};

}  // namespace leeway::collective
