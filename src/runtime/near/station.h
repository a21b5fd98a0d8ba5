// A rank's place at its arena: says how far this rank has come, and waits for the others.
//
// A wait polls for a while, lets other threads run for a while, and then sleeps in the kernel, on a
// word of the peer that it waits for. Each rank says on which peer's word it sleeps. A peer that
// changes its word wakes the ranks that sleep there. While no rank sleeps, this costs no system
// call.
#pragma once

#include <functional>
#include <string>

#include "base/time.h"
#include "near/arena.h"

namespace leeway::near {

// The clock and the liveness check that a wait uses in addition to the lines.
struct Surroundings {
  std::function<Instant()> now;
  // Called every 20 ms during a wait, to check that the peers live. A status that is not ok ends
  // the wait; the function then sets its argument to a rank that does not live.
  std::function<Status(Rank&)> look;
};

// The call that waits: its name for error texts, and its deadline.
struct Terms {
  const char* name = "";
  std::uint64_t call = 0;  // from 1; people count from 0
  Instant deadline = Instant::infinite_future();
  Duration length{0};  // time from the start of the call to the deadline, for texts
};

// Calls have rising numbers. A rank posts steps 1, 2, ... of a call, and after each step waits for
// the others (await_all()). It may leave the call by give_up(). After that, or after a call that
// went by datagrams, its next call starts with begin() and a wait for step 0.
class Station {
 public:
  Station(const Arena& arena, Surroundings surroundings);

  const Arena& arena() const { return arena_; }
  Instant now() const { return surroundings_.now(); }

  // Tells the other ranks that this rank has come to this step.
  void post(std::uint64_t call, std::uint64_t step) {
    arena_.own_line().progress.store(progress_of(call, step), std::memory_order_release);
    ring();
  }
  // Says that this rank has left all calls before this one.
  void begin(std::uint64_t call);
  // Says that the call has failed here, and that this rank does not use the call's memory any more.
  // Peers are told the reason, and the rank at which the latest error of this rank began.
  void give_up(std::uint64_t call, StatusCode why);
  // Makes `rank` the culprit of the latest error: the rank at which the failure began.
  void blame(Rank rank) { culprit_ = rank; }
  // Says that the call goes by datagrams, and that this rank will not come to it here. Any thread
  // may call it.
  void go_elsewhere(std::uint64_t call);
  // Says that no further call of this rank comes.
  void leave(Gone how);
  // Says that a region was given back.
  void note_freed();

  // Waits until all others have come to this step of the call; for step 0, until they have left all
  // calls before this one. On success, the words that they wrote before they posted the step can be
  // read. Otherwise returns the error with which the call fails: the deadline passed, a peer gave
  // the call up or is gone, Surroundings::look() found a dead peer, or abort() was called. Errors
  // name the rank. `inspect` is called for ranks that have come, while others have not.
  using Inspect = std::function<Status(Rank)>;
  Status await_all(const Terms& terms, std::uint64_t step, const Inspect& inspect = {});
  // Returns true if a rank makes this call by datagrams. Every rank sees this at the latest when
  // its wait for step 1 has succeeded or failed.
  bool anyone_elsewhere(const Terms& terms) const;
  // Returns the error for a call whose deadline has passed before it could begin, because this rank
  // is still in an earlier call.
  Status overdue_behind(const Terms& terms) const;
  // Returns true if another rank has called leave(). Any thread may call it.
  bool anyone_gone() const;
  // Returns true if some peer's latest failure was that it believed this rank to be gone.
  bool is_given_up() const;
  // Returns an error if the peer has failed in this call.
  Status check_took_part(const Terms& terms, Rank peer);
  // Returns an error if another rank has failed in this call or a later one. If it returns ok, the
  // memory of other ranks that this rank has read so far was still valid when it was read.
  Status check_none_gave_up(const Terms& terms);

  // Makes the current wait fail, if there is one, and all later ones. Any thread may call it. The
  // text of the error contains `how`, which must stay valid.
  void abort(const char* how);
  bool aborted() const { return how_.load(std::memory_order_relaxed) != nullptr; }
  Status ended() const;

 private:
  void ring();
  // A step to which a peer is to come. A peer also reaches step 0 if it has called begin() for the
  // call.
  struct Goal {
    std::uint64_t progress = 0;
    std::uint64_t begun = 0;
    bool reached(const Line& line) const {
      return line.progress.load(std::memory_order_acquire) >= progress ||
             line.begun.load(std::memory_order_acquire) >= begun;
    }
  };
  static Goal goal_of(const Terms& terms, std::uint64_t step);
  Status look(const Terms& terms, const Goal& goal, const Inspect& inspect, Instant now);
  // Returns an error whose text begins with this rank and the call.
  Status error(const Terms& terms, StatusCode code, const std::string& what) const;
  // These functions set `culprit_` to the rank at which the failure began.
  Status gone(const Terms& terms, Rank peer, const char* how);
  Status failed_there(const Terms& terms, Rank peer);
  Rank farthest_behind(const Goal& goal) const;
  Status timed_out(const Terms& terms, Rank last) const;
  Status overdue(const Terms& terms, const Goal& goal);
  void sleep(const Line& line, Rank peer, const Goal& goal, Duration patience);

  const Arena arena_;
  const Surroundings surroundings_;
  Rank culprit_ = kNoRank;  // rank to blame for the latest error, or kNoRank for this rank
  std::atomic<std::uint32_t> steps_{0};
  std::atomic<const char*> how_{nullptr};  // reason of an abort, or null
};

}  // namespace leeway::near
