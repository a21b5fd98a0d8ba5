// Liveness of peers, and what becomes of operations when a peer dies or leaves (WIRE 6).
#pragma once

#include "leeway/status.h"
#include "protocol/settling.h"
#include "protocol/watched_tags.h"

namespace leeway::protocol {

class Liveness {
 public:
  Liveness(EndpointState& state, Settling& settling, const WatchedTags& tags)
      : state_(state), settling_(settling), tags_(tags) {}

  // Starts to watch a peer from which something is expected.
  void watch(Instant now, Rank peer);
  void watch_peers(Instant now);
  // With `on`, watches whether all peers live, because something other than a round waits for them.
  void watch_all(Instant now, bool on);
  // Looks whether a watched peer lives. Returns true if the peer is dead; then call bury().
  bool wake(Instant now, Rank peer);
  // Treats the peer's process as dead: exact operations with it fail, and lossy ones do without it.
  void bury(Instant now, Rank peer);
  // Starts a round without the peers that had left before: the round expects nothing more of them.
  void start_without(Instant now, Round& round);

  void on_goodbye(Instant now, Rank from);
  // Call it when a peer says that it gave this rank up as dead. Returns true if more than half of
  // the other ranks have said so: no operation can succeed here any more.
  bool on_given_up(Instant now, Rank from);
  // Call it when a process that was given up as dead speaks again. Tells the process that it was
  // given up, and ignores its datagram.
  void answer_dead(Rank from, wire::PacketType type);
  // WIRE 6.10: answers a flood of probes by a few reports, the last of which leaves after the last
  // probe came.
  void on_probe(Instant now, Rank from);
  void answer_probe(Instant now, Rank peer);

  // Error if more than half of the peers gave this rank up, so that no operation can succeed here
  // any more; else ok.
  const Status& given_up() const { return given_up_; }
  // Error that names the first peer that was found dead; ok if none was.
  const Status& first_death() const { return first_death_; }
  // Returns the first peer that was found dead, or kNoRank.
  Rank first_dead() const { return first_dead_; }
  // Return true if at least one peer (any_gone) or every peer (all_gone) has said good-bye or is
  // dead.
  bool any_gone() const { return state_.any_gone; }
  bool all_gone() const;

 private:
  bool expects(Rank peer) const;
  void lose_in_all_rounds(Instant now, Rank peer);
  void lose_peer(Instant now, Round& round, Rank peer);
  Status loss_of(const Round& round, Rank peer) const;
  Status gave_up_by(Rank peer) const;

  EndpointState& state_;
  Settling& settling_;
  const WatchedTags& tags_;
  bool watched_from_outside_ = false;
  Status first_death_;
  Rank first_dead_ = kNoRank;
  Status given_up_;
  int gave_us_up_ = 0;  // peers that gave this rank up
};

}  // namespace leeway::protocol
