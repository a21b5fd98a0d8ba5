// Decides when a rank leaves the group (WIRE 6.2 to 6.4). The rank serves its peers until they are
// quiet, then repeats its good-bye until each has answered. Class Leaving asks and tells the peers.
//
// The states are `here`, serving (after serve()) and parting (after part()). A peer may still wait
// for this rank because the rank's last confirmation or packet was lost. The peer's requests may be
// lost, too, so that the peer seems quiet. Therefore the rank repeats its good-bye, after which the
// peer waits no more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "leeway/types.h"
#include "protocol/link.h"

namespace leeway::protocol {

class Departure {
 public:
  bool here() const { return presence_ == Presence::here; }
  bool serving() const { return presence_ == Presence::serving; }
  bool parting() const { return presence_ == Presence::parting; }

  // Starts serving. `slowest` is the time-out of the slowest link.
  void serve(Instant now, Duration slowest);

  // State of the group while this rank serves it. ask_again() returns nullopt if this rank may part
  // now, else when to call it again.
  struct Group {
    bool idle = false;  // no round is open
    // If true, no peer has said good-bye. Then this rank may part only once all peers are content
    // (want nothing more from it) or quiet.
    bool first = true;
    bool content = false;  // all reported that they have no round open and opened all of ours
    Duration silence{};    // time since any peer was heard
    Duration slowest{};    // time-out of the slowest link
  };
  std::optional<Instant> ask_again(Instant now, const Group& group) const;
  // Returns true if peers should be asked now whether they are content (Group). They are asked when
  // no round is open here any more, up to kQuestionsMax times.
  bool asks_peers(Instant now, const Group& group);
  // Notes that this process forwarded a datagram between two peers that have no path of their own.
  // These peers could not end their last operation without this process, so this rank stays while
  // they use it.
  void on_forwarded(Instant now) { forwarded_at_ = now; }
  bool has_forwarded() const { return forwarded_at_.has_value(); }
  // Time since serving or parting began. If no peer spoke since then, it is the peers' silence.
  Duration served(Instant now) const { return now - since_; }

  // Starts parting from `peers` ranks.
  void part(Instant now, int peers);
  // How certain it is that a peer waits for the good-bye.
  enum class Awaited : std::uint8_t {
    no,       // it gave this rank up: the good-bye is said once
    perhaps,  // it was never heard: it may not be there, or had nothing to say yet
    yes,
  };
  // Makes a good-bye to this peer due unless one was sent. Returns when on_wake() is due.
  Instant owe(Instant now, Rank peer, const RoundTrip& rtt, Awaited awaited);
  bool parted(Rank peer) const { return farewells_[peer].answered || farewells_[peer].given_up; }

  // Result of on_wake(): whether to repeat the good-bye, and when to look again (infinite future:
  // never).
  struct Wake {
    bool say = false;
    Instant again_at = Instant::infinite_future();
  };
  Wake on_wake(Instant now, Rank peer, const RoundTrip& rtt);

  bool said_goodbye(Rank peer) const { return farewells_[peer].said; }
  // Returns the number of copies to send now, 0 if no good-bye is due. `asked`: the peer waits for
  // a report, which a good-bye replaces. `usual`: copies of a control datagram to this peer.
  int take_copies(Rank peer, bool asked, int usual);
  // Call it when the peer reported that it has heard the good-bye.
  void on_answer(Rank peer) { farewells_[peer].answered = true; }

 private:
  struct Farewell {
    bool due = false;
    bool said = false;    // at least once
    bool lasting = true;  // repeated for at least kFarewellMin, longer than most outages
    bool answered = false;
    bool given_up = false;
    std::uint32_t tries = 0;
    Instant again_at = Instant::infinite_future();
  };
  enum class Presence : std::uint8_t { here, serving, parting } presence_ = Presence::here;
  // Returns true if two peers still use this process as their relay.
  bool relays(Instant now, Duration slowest) const;

  Instant since_{0};                     // when serving or parting began
  Instant until_{0};                     // latest end of serving
  Instant asked_at_{0};                  // time of the last question to peers
  int questions_ = 0;                    // questions asked
  std::optional<Instant> forwarded_at_;  // when this process last forwarded a datagram
  std::vector<Farewell> farewells_;      // by peer, when parting
};

}  // namespace leeway::protocol
