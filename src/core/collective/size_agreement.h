// How the ranks of a communicator agree on the length of its datagrams (WIRE 10.4): what each rank
// has told, and who has acknowledged this rank's size. It says whom to ask next, and sends nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/types.h"

namespace leeway::collective {

class SizeAgreement {
 public:
  SizeAgreement(Rank self, std::size_t ranks) : self_(self), sizes_(ranks), knows_(ranks) {}

  // Length of the longest datagram that this rank's paths carry; 0 if not known.
  std::uint16_t own() const { return sizes_[self_]; }
  // Length of the longest datagram that all ranks' paths carry to each other. Returns nullopt until
  // all have told theirs.
  std::optional<std::size_t> agreed_bytes() const;
  // The other ranks that have not told their size.
  std::vector<Rank> untold() const;
  // Returns true if each peer has acknowledged this rank's size, or `is_gone(rank)` says that it
  // need not. Also true if ranks do not ask each other.
  template <typename IsGone>
  bool known_to_all(IsGone&& is_gone) const {
    for (Rank rank = 0; rank < sizes_.size() && own() != 0; ++rank) {
      if (rank != self_ && !knows_[rank] && !is_gone(rank)) return false;
    }
    return true;
  }

  // Asks the ranks that have not told their size. When this rank's size becomes known, tells it to
  // all. `own`: that size, 0 if it is not known. A size that was told does not change.
  void ask(std::size_t own);
  // Tells this rank's size again to those that have not acknowledged it.
  void tell();
  // Returns the next rank to which a question is to be sent; kNoRank if there is none. `number`:
  // the question's number, which must be the latest of its process.
  Rank next(std::uint32_t number);

  void on_told(Rank from, std::uint16_t bytes);
  // Call it when the rank answered question `number`. `latest`: number of the latest question sent.
  void on_acknowledged(Rank from, std::uint32_t number, std::uint32_t latest);

 private:
  Rank self_;
  std::vector<std::uint16_t> sizes_;  // by rank; 0 if not known
  std::vector<bool> knows_;           // by rank: it has acknowledged this one's size
  Rank asked_ = 0;                    // ranks below were asked for their size
  bool told_ = false;                 // all ranks that may not know this one's size were told it
  // Number of the first question that told this one's size; 0 if none.
  std::uint32_t first_told_ = 0;
};

}  // namespace leeway::collective
