// A rank at its arena: tells the others how far it has come, and waits for them.
//
// It looks for a while, lets other threads run for a while, and then sleeps in the kernel, on a
// word of the peer that it waits for. Who changes such a word wakes whoever says that it sleeps
// there: nothing of it costs a system call while nobody sleeps.
#pragma once

#include <functional>

#include "base/time.h"
#include "near/arena.h"

namespace leeway::near {

// What a wait looks at besides the lines.
struct Surroundings {
  std::function<Instant()> now;
  // Asked now and then by a wait that is long in vain: whether the peers live. Not ok ends it, and
  // the rank is that of one that does not.
  std::function<Status(Rank&)> look;
};

// The call that waits: for texts, and by when it must be over.
struct Terms {
  const char* name = "";
  std::uint64_t call = 0;  // from 1; people count from 0
  Instant deadline = Instant::infinite_future();
  Duration length{0};  // of the deadline
};

class Station {
 public:
  Station(const Arena& arena, Surroundings surroundings);

  const Arena& arena() const { return arena_; }
  Instant now() const { return surroundings_.now(); }

  // This rank has come so far.
  void post(std::uint64_t call, std::uint64_t step) {
    arena_.own_line().progress.store(progress_of(call, step), std::memory_order_release);
    ring();
  }
  // It has left all calls before this one.
  void begin(std::uint64_t call);
  // The call has failed here: nothing of its memory is this rank's business any more. Peers are
  // told why, and which rank it began with: the one that the latest error here names.
  void give_up(std::uint64_t call, StatusCode why);
  // As if the latest error named it.
  void blame(Rank rank) { culprit_ = rank; }
  // The call goes by datagrams, and this rank will not come to it here. Any thread.
  void go_elsewhere(std::uint64_t call);
  // No call of this rank comes any more.
  void leave(Gone how);
  // A region was given back.
  void note_freed();

  // All others have come to this step of the call. Else what a call fails with, by name: the
  // deadline, a peer that gave the call up or is gone, what look() said, or abort(). What peers
  // wrote before they posted the step can be read then. `inspect`: asked of peers that have, while
  // others have not.
  using Inspect = std::function<Status(Rank)>;
  Status await_all(const Terms& terms, std::uint64_t step, const Inspect& inspect = {});
  // All others have left all calls before this one.
  Status await_begun(const Terms& terms) { return await_all(terms, 0); }
  // Whether a rank takes this call to datagrams. If so, all see that when they have come to step 1
  // or have waited for it in vain.
  bool anyone_elsewhere(const Terms& terms) const;
  // Not ok: the peer has failed in this call.
  Status check_took_part(const Terms& terms, Rank peer);
  // Not ok: a rank has failed in this call or a later one. Ok says of memory that was read before
  // that it was what it should be.
  Status check_none_gave_up(const Terms& terms);

  // Any thread. The wait under way fails, if there is one, and so do those to come: with `how`,
  // which stays valid, in the text.
  void abort(const char* how);
  bool aborted() const { return how_.load(std::memory_order_relaxed) != nullptr; }
  Status ended() const;

 private:
  void ring();
  // A step to which a peer is to come; 0: the call.
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
  // Each remembers the rank with which the failure began.
  Status gone(const Terms& terms, Rank peer, const char* how);
  Status failed_there(const Terms& terms, Rank peer);
  Status overdue(const Terms& terms, const Goal& goal);
  void sleep(const Line& line, Rank peer, const Goal& goal, Duration patience);

  const Arena arena_;
  const Surroundings surroundings_;
  Rank culprit_ = kNoRank;  // of the latest error; kNoRank: this rank
  std::atomic<std::uint32_t> steps_{0};
  std::atomic<const char*> how_{nullptr};  // aborted, where there is one
};

}  // namespace leeway::near
