#include "near/station.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <thread>
#include <utility>

#include "base/duration_text.h"
#include "protocol/mismatch.h"

namespace leeway::near {
namespace {

// A waiting rank looks this many times in a row, for some 2 us, before it lets other threads run. A
// yield costs a system call, but the awaited peer may need this core. With 20 us in place of 2, a
// call of 4 KiB between 2 ranks on busy cores took 22 us instead of 6.
constexpr int kPauses = 32;

// A waiting rank lets other threads run this many times before it sleeps.
constexpr int kYields = 200;

// Longest sleep of a waiting rank. A rank sleeps on a word of one peer, and only that peer wakes
// it. So the rank notices changes of other peers after this time at the latest.
constexpr Duration kSleepMax = std::chrono::milliseconds(10);

// A waiting rank asks once in kLookEvery whether its peers live.
constexpr Duration kLookEvery = std::chrono::milliseconds(20);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The futex is not a private one, because several processes map the word.
void futex_wait(const ShortWord& word, std::uint32_t seen, Duration patience) {
  const timespec until{patience.count() / 1'000'000'000, patience.count() % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &until, nullptr, 0);
}
void futex_wake(const ShortWord& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::string deadline_of(const Terms& terms) {
  if (terms.deadline == Instant::infinite_future()) return "no deadline";
  return std::string("deadline ") + in_milliseconds(terms.length).data();
}

std::string named(Rank rank) {
  return "rank " + std::to_string(rank);
}

bool went_elsewhere(const Line& line, std::uint64_t call) {
  return line.elsewhere[call % kElsewhereMax].load() == call;
}

unsigned long long number_of(const Terms& terms) {
  return terms.call - 1;
}

}  // namespace

Station::Station(const Arena& arena, Surroundings surroundings)
    : arena_(arena), surroundings_(std::move(surroundings)) {}

// Changes `steps`, and wakes the peers that sleep on it. `steps` and `asleep` are sequentially
// consistent. So a peer that falls asleep sees the change, or this rank sees that the peer sleeps.
void Station::ring() {
  arena_.own_line().steps.store(steps_.fetch_add(1, std::memory_order_relaxed) + 1);
  bool sleeps = false;
  for (Rank peer = 0; peer < arena_.ranks(); ++peer)
    sleeps |= arena_.line(peer).asleep.load() == arena_.self() + 1u;
  if (sleeps) [[unlikely]]
    futex_wake(arena_.own_line().steps);
}

void Station::begin(std::uint64_t call) {
  arena_.own_line().begun.store(call);
  ring();
}

void Station::give_up(std::uint64_t call, StatusCode why) {
  const Reason reason{static_cast<std::uint8_t>(why),
                      culprit_ == kNoRank ? arena_.self() : culprit_};
  arena_.own_line().why.store(reason.word());
  culprit_ = kNoRank;
  arena_.own_line().gave_up.store(call);
  ring();
}

// Wakes no peer that waits for this call: each looks at this word after kSleepMax at the latest.
void Station::go_elsewhere(std::uint64_t call) {
  arena_.own_line().elsewhere[call % kElsewhereMax].store(call);
}

bool Station::anyone_elsewhere(const Terms& terms) const {
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    if (went_elsewhere(arena_.line(peer), terms.call)) return true;
  }
  return false;
}

void Station::leave(Gone how) {
  arena_.own_line().gone.store(static_cast<std::uint32_t>(how));
  ring();
}

void Station::note_freed() {
  arena_.own_line().freed.fetch_add(1);
}

Status Station::error(const Terms& terms, StatusCode code, const std::string& what) const {
  return Status::error(code, "rank %u: %s #%llu: %s", unsigned{arena_.self()}, terms.name,
                       number_of(terms), what.c_str());
}

Status Station::ended() const {
  return Status::error(StatusCode::kCancelled, "rank %u: communicator %s", unsigned{arena_.self()},
                       how_.load());
}

void Station::abort(const char* how) {
  how_ = how;
  leave(Gone::aborted);
  const std::uint32_t asleep = arena_.own_line().asleep.load();
  if (asleep != 0) futex_wake(arena_.line(static_cast<Rank>(asleep - 1)).steps);
}

Station::Goal Station::goal_of(const Terms& terms, std::uint64_t step) {
  return {progress_of(terms.call, step), step == 0 ? terms.call : ~std::uint64_t{0}};
}

Status Station::await_all(const Terms& terms, std::uint64_t step, const Inspect& inspect) {
  const Goal goal = goal_of(terms, step);
  Instant look_at{0};
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    if (peer == arena_.self()) continue;
    const Line& line = arena_.line(peer);
    for (int turn = 0; !goal.reached(line); ++turn) {
      if (turn < kPauses) {
        pause();
        continue;
      }
      const Instant now = surroundings_.now();
      if (Status status = look(terms, goal, inspect, now); !status.ok()) return status;
      if (look_at == Instant{0}) look_at = now + kLookEvery;
      if (now >= look_at) {
        look_at = now + kLookEvery;
        culprit_ = kNoRank;
        if (Status status = surroundings_.look(culprit_); !status.ok()) {
          return Status::error(status.code(), "%s (%s #%llu)", status.c_str(), terms.name,
                               number_of(terms));
        }
      }
      if (turn < kPauses + kYields) {
        sched_yield();
      } else {
        sleep(line, peer, goal, std::min(kSleepMax, terms.deadline - now));
      }
    }
  }
  return Status();
}

// Checks all peers, and not only the one that is waited for, because any peer that gave up ends the
// call for all ranks.
Status Station::look(const Terms& terms, const Goal& goal, const Inspect& inspect, Instant now) {
  if (aborted()) return ended();
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    if (peer == arena_.self()) continue;
    const Line& line = arena_.line(peer);
    // This check comes first. A peer that made this call by datagrams may already be in a later
    // call, and then seems to have reached the goal.
    if (went_elsewhere(line, terms.call))
      return error(terms, StatusCode::kMismatch, named(peer) + " makes another call");
    if (goal.reached(line)) {
      if (!inspect) continue;
      if (Status status = inspect(peer); !status.ok()) return status;
      continue;
    }
    const bool gave_up = line.gave_up.load() >= terms.call;
    const auto gone = static_cast<Gone>(line.gone.load());
    if (!gave_up && gone == Gone::no) continue;
    if (goal.reached(line)) continue;  // it had come before it gave up or left
    if (gone == Gone::aborted)
      return this->gone(
          terms, peer,
          "left the operation: its process ended, or its communicator was aborted or destroyed");
    if (gave_up) return failed_there(terms, peer);
    return this->gone(terms, peer, "has left the communicator");
  }
  return now >= terms.deadline ? overdue(terms, goal) : Status();
}

// Returns the rank that is the farthest from the goal, or kNoRank if all ranks have reached it.
Rank Station::farthest_behind(const Goal& goal) const {
  Rank last = kNoRank;
  std::uint64_t least = goal.progress;
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    const std::uint64_t come = arena_.line(peer).progress.load();
    if (peer == arena_.self() || come >= least || goal.reached(arena_.line(peer))) continue;
    least = come;
    last = peer;
  }
  return last;
}

Status Station::timed_out(const Terms& terms, Rank last) const {
  const bool begun = arena_.line(last).progress.load() >= progress_of(terms.call, 0);
  return error(terms, StatusCode::kDeadlineExceeded,
               "Timed out (" + deadline_of(terms) + "): " + named(last) +
                   (begun ? " does not go on" : " has not begun it"));
}

Status Station::overdue(const Terms& terms, const Goal& goal) {
  const Rank last = farthest_behind(goal);
  if (last == kNoRank) return Status();  // the rank came in the last moment
  culprit_ = kNoRank;
  return timed_out(terms, last);
}

Status Station::overdue_behind(const Terms& terms) const {
  const Rank last = farthest_behind(goal_of(terms, 1));
  if (last != kNoRank) return timed_out(terms, last);
  return error(terms, StatusCode::kDeadlineExceeded,
               "Timed out (" + deadline_of(terms) + "): the call before it is not over");
}

void Station::sleep(const Line& line, Rank peer, const Goal& goal, Duration patience) {
  ShortWord& asleep = arena_.own_line().asleep;
  const std::uint32_t seen = line.steps.load();
  asleep.store(peer + 1u);
  const bool changed = line.steps.load() != seen || goal.reached(line) || aborted();
  if (!changed) futex_wait(line.steps, seen, patience);
  asleep.store(0);
}

Status Station::gone(const Terms& terms, Rank peer, const char* how) {
  culprit_ = peer;
  return error(terms, StatusCode::kPeerLost,
               named(peer) + " " + how + " (" + deadline_of(terms) + ")");
}

// Returns the error for a peer that gave up this call. A peer's line has only the reason of its
// latest failure. If the peer has failed again in a later call, the error gives that later reason.
Status Station::failed_there(const Terms& terms, Rank peer) {
  const Reason reason = Reason::of(arena_.line(peer).why.load());
  culprit_ = reason.rank < arena_.ranks() && reason.rank != arena_.self() ? reason.rank : peer;
  switch (static_cast<StatusCode>(reason.code)) {
    case StatusCode::kDeadlineExceeded:
      return error(terms, StatusCode::kDeadlineExceeded,
                   named(culprit_) + " gave it up at its own deadline");
    case StatusCode::kPeerLost:
      if (reason.rank == arena_.self()) return gone(terms, peer, protocol::kGaveUsUp);
      if (culprit_ == peer) break;
      return error(terms, StatusCode::kPeerLost,
                   named(peer) + " gave it up because " + named(culprit_) + " is gone");
    case StatusCode::kMismatch:
      return error(terms, StatusCode::kMismatch,
                   named(peer) + " found that ranks disagree, and its error names both");
    default:
      break;
  }
  return gone(terms, peer, "could not go on with it, and its error says why");
}

bool Station::anyone_gone() const {
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    const auto gone = static_cast<Gone>(arena_.line(peer).gone.load());
    if (peer != arena_.self() && gone != Gone::no) return true;
  }
  return false;
}

bool Station::is_given_up() const {
  const Reason given_up{static_cast<std::uint8_t>(StatusCode::kPeerLost), arena_.self()};
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    if (peer != arena_.self() && arena_.line(peer).why.load() == given_up.word()) return true;
  }
  return false;
}

Status Station::check_took_part(const Terms& terms, Rank peer) {
  const bool failed = arena_.line(peer).gave_up.load() == terms.call;
  return failed ? failed_there(terms, peer) : Status();
}

Status Station::check_none_gave_up(const Terms& terms) {
  std::atomic_thread_fence(std::memory_order_acquire);
  for (Rank peer = 0; peer < arena_.ranks(); ++peer) {
    if (peer != arena_.self() && arena_.line(peer).gave_up.load() >= terms.call)
      return failed_there(terms, peer);
  }
  return Status();
}

}  // namespace leeway::near
