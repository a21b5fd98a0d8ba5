// Finds relays for peers without a path of their own (WIRE 9.8).
//
// This needs no agreement between processes. A challenge goes through other peers, sealed end to
// end, and a peer through which the answer comes back has a path to both. So any peer may relay,
// and each of the two chooses for its own direction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "leeway/types.h"
#include "seal/roaming_state.h"

namespace leeway::seal {

class RelaySearch {
 public:
  explicit RelaySearch(RoamingState& state) : state_(state) {}

  // Adds a peer. Its own addresses have a second to answer before a relay is looked for.
  void meet(Instant now, Rank slot);
  // Relay through which traffic to the peer goes; kNoRank if it goes straight to its address.
  Rank via(Rank slot) const { return helps_[slot].via; }

  // Call it when the path to the peer is lost. Peers for which it relayed need another relay, too.
  void on_lost(Instant now, Rank slot);
  // Call it when an address of the peer has answered. It needs no relay any more.
  void on_settled(Rank slot);
  // Notes that the peer asked through `via`, which therefore reaches both.
  void take_hint(Instant now, Rank slot, Rank via);
  // Takes an answer of the peer that came through `via`.
  void on_answer(Instant now, Rank slot, Rank via, std::uint64_t token);
  // Asks all relays by then whether they still reach the peer.
  void ask_relays_by(Instant at);
  // Call it while the peer is not settled.
  void on_wake(Instant now, Rank slot);

 private:
  // Challenges of a peer through others.
  struct Help : Challenges {
    Rank via = kNoRank;     // the relay
    bool searching = true;  // no relay answers for it, or `via` has stopped
    Rank hint = kNoRank;    // peer through which it asked us last
    Rank next = 0;          // peer where the search goes on
  };

  bool may_relay(Rank slot) const;
  void begin(Instant now, Rank slot, Duration patience);
  void ask(Instant now, Rank slot);
  void search(Instant now, Rank slot);
  void challenge(Rank slot, Rank via);

  RoamingState& state_;
  std::vector<Help> helps_;  // by slot
};

}  // namespace leeway::seal
