// Finds relays for peers without a path of their own (WIRE 9.8).
//
// Processes need not agree on a relay. A challenge to the peer goes through other processes, sealed
// end to end. A process through which the answer comes back reaches both ends, so it can relay.
// Each of the two ends chooses for its own direction.
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

  // Adds a peer. Its own addresses have a second to answer; then a relay is searched.
  void meet(Instant now, Rank slot);
  // Returns the peer's relay; kNoRank if traffic goes straight to the peer's address.
  Rank via(Rank slot) const { return helps_[slot].via; }

  // Call it when the path to the peer is lost. If the peer was a relay for others, those need
  // another relay.
  void on_lost(Instant now, Rank slot);
  // Call it when an address of the peer has answered, so that the peer needs no relay any more.
  void on_settled(Rank slot);
  // Notes that a challenge of the peer came through `via`, which therefore reaches both ends.
  void take_hint(Instant now, Rank slot, Rank via);
  // Takes in the peer's answer to a challenge; it came through `via`.
  void on_answer(Instant now, Rank slot, Rank via, std::uint64_t token);
  // Has all relays challenged no later than `at`, to see whether they still reach their peers.
  void ask_relays_by(Instant at);
  // Call it while the peer is not settled.
  void on_wake(Instant now, Rank slot);

 private:
  // Challenges that go to one peer through others.
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
