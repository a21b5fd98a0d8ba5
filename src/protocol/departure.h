// How a rank leaves the group (WIRE 6.2 to 6.4): it serves its peers until they are quiet, then
// repeats its good-bye until each has answered. Knows when to do what; Endpoint does it.
//
// A rank that is done may still be waited for: its last confirmation was lost, or a packet of its.
// Quiet may be a burst of losses, and a peer that hears nothing waits until its deadline; therefore
// the good-bye, which settles all that a peer may wait for, is repeated.
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

  // While serving: when to ask again whether it is time to part; nothing: it is.
  struct Group {
    bool idle = false;     // no round is open
    bool first = true;     // nobody has said good-bye: it must be found out that all are content
    bool content = false;  // all have said so: they have no round open, and opened all of ours
    Duration silence{};    // since anything was heard of any peer
    Duration slowest{};    // time-out of the slowest link
  };
  std::optional<Instant> ask_again(Instant now, const Group& group) const;
  // Whether to ask peers now if they are content: once idle, and a few times more.
  bool asks_peers(Instant now, const Group& group);
  // A datagram went through this process between two peers that have no path of their own. They
  // could not end their last operation without it, so it stays while they use it.
  void on_forwarded(Instant now) { forwarded_at_ = now; }
  bool has_forwarded() const { return forwarded_at_.has_value(); }
  // How long nothing has been heard of any peer, if none of them spoke.
  Duration served(Instant now) const { return now - since_; }

  // Starts parting, from `peers` ranks.
  void part(Instant now, int peers);
  // Whether a peer waits for the good-bye.
  enum class Awaited : std::uint8_t {
    no,       // it gave this rank up: it is told once
    perhaps,  // nothing was ever heard of it: it may not be there, or had nothing to say as yet
    yes,
  };
  // Good-bye is owed to this peer, for the first time at once.
  Instant owe(Instant now, Rank peer, const RoundTrip& rtt, Awaited awaited);
  bool parted(Rank peer) const { return farewells_[peer].answered || farewells_[peer].given_up; }

  // Time has passed: whether to say it again, and when to look again (never: infinite future).
  struct Wake {
    bool say = false;
    Instant again_at = Instant::infinite_future();
  };
  Wake on_wake(Instant now, Rank peer, const RoundTrip& rtt);

  // How many copies go out now; 0: none. `asked`: the peer waits for a report, which a good-bye
  // replaces. `usual` copies of a control datagram go to it.
  int take_copies(Rank peer, bool asked, int usual);
  // The peer reports that it has heard the good-bye.
  void on_answer(Rank peer) { farewells_[peer].answered = true; }

 private:
  struct Farewell {
    bool due = false;
    bool said = false;    // at least once
    bool lasting = true;  // is repeated for as long as outages of a network last
    bool answered = false;
    bool given_up = false;
    std::uint32_t tries = 0;
    Instant again_at = Instant::infinite_future();
  };
  enum class Presence : std::uint8_t { here, serving, parting } presence_ = Presence::here;
  // Whether two peers still use this process as their relay.
  bool relays(Instant now, Duration slowest) const;

  Instant since_{0};                     // serving or parting
  Instant until_{0};                     // serving at most
  Instant asked_at_{0};                  // peers, last
  int questions_ = 0;                    // so often
  std::optional<Instant> forwarded_at_;  // last
  std::vector<Farewell> farewells_;      // by peer, when parting
};

}  // namespace leeway::protocol
