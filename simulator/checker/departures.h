// I15: a rank that leaves is gone within a time limit, and no rank waits for packets of a rank that
// left.
//
// A leaving rank serves its peers until everything that it sent is confirmed and they are quiet,
// for at most max(64 time-outs, 4 s). It then repeats its good-bye until each peer has answered, or
// until it was sent 12 times and for 2 s (WIRE 6.2 to 6.4). So
//   - on_left comes within the sum of both times, not counting pauses;
//   - an exact call does not fail because of a peer that left after the same call had succeeded
//     there, unless the peer has served for its full time;
//   - a deadline does not cut a call that lacks only packets of ranks that left long before. A rank
//     that opens the communicator after a peer has left may learn of it from nobody (WIRE 6.3).
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "checker/check.h"
#include "checker/ledger_book.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class Departures {
 public:
  // `pauses`: ranks may be stopped, so the time for which others wait is not checked. `outages`:
  // all copies of a good-bye may be lost.
  Departures(Check& check, LedgerBook& book, bool pauses, bool outages)
      : check_(check), book_(book), pauses_(pauses), outages_(outages), ranks_(book.size()) {
    for (RankState& rank : ranks_) rank.heard_at.resize(book.size());
  }

  void on_leave(Instant now, Rank rank, bool at_once);
  void on_left(Instant now, Rank rank);
  // Call it when the rank's engine reads a good-bye of `from`, or has given `from` up.
  void on_goodbye(Instant now, Rank rank, Rank from);
  void on_pumped(Rank rank);
  void on_pause(Instant now, Rank rank);
  void on_resume(Instant now, Rank rank);
  // Returns true if a call may have ended incomplete, with `status`, because a rank left without
  // serving its peers, or after it had served them for as long as it must.
  bool may_have_cut(Instant now, const Status& status) const;
  // Call it when the rank's call is over, before its ledger is closed.
  void on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result);

 private:
  struct RankState {
    bool leaving = false;
    bool at_once = false;
    bool left = false;
    Instant leave_at;
    Instant left_at;
    bool paused = false;
    Instant paused_at;
    Duration paused_for{0};  // since it leaves
    Duration slowest{0};     // the longest time-out since the rank began to leave
    // The process relays datagrams between peers without a path of their own.
    bool forwards = false;
    std::vector<Instant> heard_at;  // by peer: when its good-bye was read, or 0
    // By peer, set when this rank has left: whether this rank ever heard the peer.
    std::vector<bool> knew;
  };
  Duration timeout(Rank rank, Rank peer) const;
  bool at_once(Rank rank) const;
  bool left_early(Instant opened, Instant limit, Rank rank, Rank peer) const;
  void check_failure(Instant now, Rank rank, const CallLedger& call, const CallResult& result);
  void check_wait(Instant now, Rank rank, const CallLedger& call, const CallResult& result);

  Check& check_;
  LedgerBook& book_;
  bool pauses_;
  bool outages_;
  std::vector<RankState> ranks_;
};

}  // namespace leeway::sim
