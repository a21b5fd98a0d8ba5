#include "seal/roaming.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// After this many unanswered challenges the present address counts as silent. At 10 % loss both
// ways, a working address is found silent in one of four thousand series of challenges.
constexpr std::uint64_t kAsksOfPresent = 5;
// Limit on the challenges to an address that another peer told.
constexpr std::uint64_t kAsksOfWhereabouts = 8;
// How many times other peers are told the address of a peer that moved. They are the peers in the
// kToldMax - 1 slots after its own.
constexpr int kTells = 3;
constexpr Duration kTellMoveAgain = 250ms;
constexpr std::size_t kToldMax = 64;
// An address on trial is given up if it has not answered after this time.
constexpr Duration kTrialFor = 3s;
constexpr Duration kProbePauseMin = 2ms;
constexpr Duration kProbePauseMax = 1s;
constexpr Duration kFirstPause = 10ms;  // for an address with unknown round trip
constexpr Duration kHeardPause = 50ms;  // for an address that is heard, and has not answered
// How long after the first candidate's answer other candidates may answer. A later one wins if its
// round trip is a quarter shorter.
constexpr Duration kComparing = 200ms;
// An address whose trial failed is not tried again for this time.
constexpr Duration kRefusedFor = 1s;
// If all places for trials are taken, a peer's new trials are at least this far apart.
constexpr Duration kTrialsApart = 100ms;
// How long after a move traffic may go back to the former address.
constexpr Duration kFormerFor = 30s;
// Number of challenges after which a candidate is challenged only every kSlowly.
constexpr std::uint64_t kAsksOfCandidate = 30;
constexpr Duration kSlowly = 30s;

constexpr std::uint64_t kCandidateAllowance = UINT64_MAX / 2;
// Length of a sealed challenge, without the headers of IP and UDP.
constexpr std::uint64_t kChallengeBytes = kPathMessageBytesMax + 32;

// Loopback's addresses do not change, and nothing translates them.
bool is_loopback(const NetworkAddress& address) {
  constexpr std::array<std::uint8_t, 13> kV4Loopback = {0, 0, 0, 0,    0,    0,  0,
                                                        0, 0, 0, 0xFF, 0xFF, 127};
  if (std::equal(kV4Loopback.begin(), kV4Loopback.end(), address.ip.begin())) return true;
  return std::all_of(address.ip.begin(), address.ip.end() - 1, [](auto b) { return b == 0; }) &&
         address.ip.back() == 1;
}

Duration pause_after(std::uint64_t asked) {
  if (asked >= kAsksOfCandidate) return kSlowly;
  return std::min<Duration>(kFirstPause * (1 << std::min<std::uint64_t>(asked, 7)), kProbePauseMax);
}

}  // namespace

Place Roaming::place(Instant now, const NetworkAddress& address, std::uint64_t allowance) {
  Place at;
  at.begin(now, state_.new_token(), now);
  at.address = address;
  at.allowance = allowance;
  return at;
}

void Roaming::meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
                   std::uint64_t name) {
  LEEWAY_ASSERT(!candidates.empty() && candidates[0].known());
  Peer& peer = state_.add(slot);
  LEEWAY_ASSERT(!peer.current.known());
  peer.current = candidates[0];
  peer.name = name;
  peer.sent_at = peer.met_at = peer.heard_at = now;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.present.told = true;
  relays_.meet(now, slot);
  std::size_t used = 0;
  for (const NetworkAddress& candidate : candidates.subspan(1)) {
    if (used == peer.trials.size() || !candidate.known()) break;
    if (candidate == peer.current || peer.trial_at(candidate) != nullptr) continue;
    peer.trials[used] = place(now, candidate, kCandidateAllowance);
    peer.trials[used++].told = true;
  }
  state_.activate(now, slot);
  if (is_loopback(peer.current)) return;
  keep_alive_at_ = std::min(keep_alive_at_, now + state_.pause());
  state_.wake_by(keep_alive_at_);
}

void Roaming::on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                        bool newest) {
  Peer& peer = state_.peers[slot];
  if (source == peer.current) return on_heard(now, slot);
  if (Place* const trial = peer.trial_at(source)) {
    trial->allowance = std::min(trial->allowance + 3 * bytes, kCandidateAllowance);
    state_.wake_by(trial->next_at);
    return;
  }
  if (newest) begin_trial(now, slot, source, 3 * bytes);
}

void Roaming::begin_trial(Instant now, Rank slot, const NetworkAddress& source,
                          std::uint64_t allowance) {
  Peer& peer = state_.peers[slot];
  if (source == peer.refused && now < peer.refused_until) return;
  Place* room = nullptr;
  for (Place& trial : peer.trials) {
    if (!trial.known()) {
      room = &trial;
      break;
    }
    if (!trial.answered && (room == nullptr || trial.began < room->began)) room = &trial;
  }
  if (room == nullptr || (room->known() && now - peer.trial_began < kTrialsApart)) return;
  *room = place(now, source, allowance);
  room->until = now + kTrialFor;
  peer.trial_began = now;
  if (!peer.present.known()) peer.present = place(now, peer.current, kCandidateAllowance);
  state_.activate(now, slot);
}

void Roaming::on_message(Instant now, Rank slot, const NetworkAddress& source,
                         const PathMessage& message) {
  switch (message.kind) {
    case PathMessage::Kind::challenge:
      seen_at_ = message.seen;
      if (Place* const trial = state_.peers[slot].trial_at(source);
          trial != nullptr && !trial->answered)
        trial->allowance -= std::min(trial->allowance, kChallengeBytes);
      state_.put_out({slot, source, {PathMessage::Kind::answer, message.token, source}});
      break;
    case PathMessage::Kind::answer:
      seen_at_ = message.seen;
      on_answer(now, slot, source, message.token);
      break;
    case PathMessage::Kind::keep_alive:
      break;
    case PathMessage::Kind::whereabouts:
      on_whereabouts(now, message);
      break;
  }
}

void Roaming::on_relayed_message(Instant now, Rank slot, Rank via, const PathMessage& message) {
  switch (message.kind) {
    case PathMessage::Kind::challenge:
      relays_.take_hint(now, slot, via);
      state_.put_out(
          {slot, {}, {PathMessage::Kind::answer, message.token, state_.peers[slot].current}, via});
      break;
    case PathMessage::Kind::answer:
      relays_.on_answer(now, slot, via, message.token);
      break;
    case PathMessage::Kind::keep_alive:
      break;
    case PathMessage::Kind::whereabouts:
      on_whereabouts(now, message);
      break;
  }
}

// Begins a trial of an address that another peer told. The address itself must still answer.
void Roaming::on_whereabouts(Instant now, const PathMessage& message) {
  if (message.token == 0 || !message.seen.known()) return;
  for (Rank slot = 0; slot < state_.peers.size(); ++slot) {
    Peer& peer = state_.peers[slot];
    if (peer.name != message.token || peer.current == message.seen) continue;
    if (peer.trial_at(message.seen) == nullptr)
      begin_trial(now, slot, message.seen, kAsksOfWhereabouts * kChallengeBytes);
  }
}

// An answer to a challenge of the present or the former address may come from anywhere: it shows
// that datagrams sent to that address reach the peer.
void Roaming::on_answer(Instant now, Rank slot, const NetworkAddress& source, std::uint64_t token) {
  Peer& peer = state_.peers[slot];
  const auto answers = [&](Place& at) {
    if (!at.known() || !at.asked_with(token)) return false;
    at.answered = true;
    at.on_answer(now, token);
    return true;
  };
  if (answers(peer.present)) {
    peer.heard_at = now;
    peer.rtt = peer.present.rtt;
    if (!peer.settled) return settle(now, slot, peer.present);
    return refuse_trials(now, peer);
  }
  if (answers(peer.former)) {
    ++state_.counters.returns;
    peer.refused = peer.current;
    peer.refused_until = now + kRefusedFor;
    const Place back = peer.former;
    move(now, slot, back);
    peer.former = {};
    return;
  }
  Place* const trial = peer.trial_at(source);
  if (trial == nullptr || trial->answered || !answers(*trial)) return;
  trial->allowance = kCandidateAllowance;
  if (!peer.settled && trial->told) return settle(now, slot, *trial);
  try_to_move(now, slot);
}

// Takes the first candidate that has answered. Others may still answer within kComparing.
void Roaming::settle(Instant now, Rank slot, Place& at) {
  Peer& peer = state_.peers[slot];
  const Place winner = at;
  peer.settled = true;
  peer.heard_at = now;
  peer.rtt = winner.rtt;
  if (&at != &peer.present) {
    at = {};
    const auto others = peer.trials;
    move(now, slot, winner);
    peer.trials = others;
    if (winner.told) peer.former = {};
  }
  relays_.on_settled(slot);
  peer.present = {};
  for (Place& trial : peer.trials) {
    if (trial.known()) trial.until = now + kComparing;
  }
  state_.activate(now, slot);
}

// Ends all trials, because the present address works.
void Roaming::refuse_trials(Instant now, Peer& peer) {
  for (Place& trial : peer.trials) {
    if (!trial.known()) continue;
    peer.refused = trial.address;
    peer.refused_until = now + kRefusedFor;
    ++state_.counters.refused;
    trial = {};
  }
  peer.present = {};
  peer.suspected = false;
}

void Roaming::try_to_move(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  Place* best = nullptr;
  for (Place& trial : peer.trials) {
    if (trial.known() && trial.answered && (best == nullptr || trial.rtt < best->rtt))
      best = &trial;
  }
  if (best == nullptr) return;
  if (!peer.settled) {  // this is an address that nobody told us
    if (peer.present.asked() >= kAsksOfPresent) settle(now, slot, *best);
    return;
  }
  if (!peer.present.known()) {  // this candidate was slower to answer
    if (4 * best->rtt < 3 * peer.rtt) {
      const Place winner = *best;
      move(now, slot, winner);
      peer.former = {};
    } else {
      *best = {};
    }
    return;
  }
  if (!peer.present.silent) return;
  const Place winner = *best;
  move(now, slot, winner);
}

void Roaming::move(Instant now, Rank slot, const Place& to) {
  Peer& peer = state_.peers[slot];
  const bool same_host = peer.current.ip == to.address.ip && via(slot) == kNoRank;
  peer.former = place(now, peer.current, kCandidateAllowance);
  peer.current = to.address;
  peer.rtt = to.rtt;
  peer.present = {};
  peer.trials = {};
  peer.heard_at = now;
  peer.suspected = false;
  ++state_.counters.moves;
  state_.note_move({slot, to.address, same_host});
  peer.former.next_at = now + peer.round_trip();
  peer.tells_left = peer.name == 0 ? 0 : kTells;
  peer.tell_at = now;
  peer.moved_at = now;
  state_.activate(now, slot);
}

void Roaming::ask(Instant now, Rank slot, Place& at, Duration pause) {
  at.next_at = now + std::clamp<Duration>(pause, kProbePauseMin, kSlowly);
  if (at.allowance < kChallengeBytes) return;
  if (at.allowance < kCandidateAllowance) at.allowance -= kChallengeBytes;
  at.count(now);
  ++state_.counters.challenges;
  state_.put_out({slot, at.address, {PathMessage::Kind::challenge, at.token, at.address}});
}

// Challenges the present address sooner, since the peer was heard from it. It may have become
// reachable after a challenge failed, and the next one may be a second away.
void Roaming::ask_soon(Instant now, Rank slot) {
  Place& at = state_.peers[slot].present;
  if (!at.known()) return;
  at.next_at = std::min(at.next_at, std::max(now, at.asked_at + kHeardPause));
  state_.wake_by(at.next_at);
}

void Roaming::wake_present(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  Place& at = peer.present;
  if (!at.known() || at.silent || now < at.next_at) return;
  if (!peer.settled) {
    ask(now, slot, at, pause_after(at.asked()));
    if (at.asked() > kAsksOfPresent) try_to_move(now, slot);
    return;
  }
  if (at.asked() < kAsksOfPresent) {
    const bool last = at.asked() + 1 == kAsksOfPresent;
    return ask(now, slot, at, last ? peer.round_trip() : peer.round_trip() / 2);
  }
  at.silent = true;
  const bool lost = state_.busy && now >= silent_at(peer);
  try_to_move(now, slot);
  peer.suspected = false;
  if (lost && peer.present.silent) lose_path(now, slot);
}

void Roaming::wake_trials(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  bool any = false;
  for (Place& at : peer.trials) {
    if (!at.known()) continue;
    if (now >= at.until) {
      at = {};
      continue;
    }
    if (!at.answered && now >= at.next_at) ask(now, slot, at, pause_after(at.asked()));
    any = true;
  }
  // No trial succeeded, so the present address stays, although it may not work either.
  if (!any && peer.settled && !peer.suspected) peer.present = {};
}

void Roaming::wake_former(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  Place& at = peer.former;
  if (!at.known() || now < at.next_at) return;
  if (now - at.began >= kFormerFor) {
    at = {};
    return;
  }
  ask(now, slot, at, std::max<Duration>(now - at.began, peer.round_trip()));
}

// Tells others the address of a peer that moved: at most the kToldMax - 1 peers after it in the
// order of slots. Also tells the peer the addresses of other peers that moved lately, since earlier
// messages about their moves went to its former address.
void Roaming::wake_tells(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  if (peer.tells_left == 0 || now < peer.tell_at) return;
  --peer.tells_left;
  peer.tell_at = now + kTellMoveAgain;
  for (std::size_t i = 1; i < std::min(state_.peers.size(), kToldMax); ++i) {
    const Rank other = static_cast<Rank>((slot + i) % state_.peers.size());
    if (!state_.peers[other].current.known()) continue;
    ++state_.counters.told;
    state_.put_out({other,
                    state_.peers[other].current,
                    {PathMessage::Kind::whereabouts, peer.name, peer.current},
                    via(other)});
    const Peer& moved = state_.peers[other];
    if (moved.name == 0 || !moved.moved_at || now - *moved.moved_at > kFormerFor) continue;
    ++state_.counters.told;
    state_.put_out({slot,
                    peer.current,
                    {PathMessage::Kind::whereabouts, moved.name, moved.current},
                    via(slot)});
  }
}

// Does what is due for the peer. Returns whether it must be woken again.
bool Roaming::wake_peer(Instant now, Rank slot) {
  wake_present(now, slot);
  wake_trials(now, slot);
  wake_former(now, slot);
  wake_tells(now, slot);
  const Peer& peer = state_.peers[slot];
  if (!peer.settled) relays_.on_wake(now, slot);
  bool active = peer.tells_left > 0 || !peer.settled;
  if (peer.tells_left > 0) state_.wake_by(peer.tell_at);
  const auto await = [&](const Place& at) {
    if (!at.known()) return;
    active = true;
    const Instant next = at.answered || at.silent ? at.until : std::min(at.next_at, at.until);
    state_.wake_by(std::max(next, now + Duration(1)));
  };
  await(peer.present);
  for (const Place& trial : peer.trials) await(trial);
  await(peer.former);
  return active;
}

void Roaming::set_busy(Instant now, bool busy) {
  if (busy == state_.busy) return;
  state_.busy = busy;
  state_.busy_since = now;
  if (!busy || keep_alive_at_ == Instant::infinite_future()) return;
  relays_.ask_relays_by(now + state_.pause() / 2);
  keep_alive_at_ = std::min(keep_alive_at_, now + state_.pause());
  state_.wake_by(keep_alive_at_);
}

void Roaming::on_wake(Instant now) {
  if (now < state_.wake_at) return;
  state_.wake_at = Instant::infinite_future();
  for (std::size_t i = 0; i < state_.active.size();) {
    const Rank slot = state_.active[i];
    if (wake_peer(now, slot)) {
      ++i;
    } else {
      state_.peers[slot].active = false;
      state_.active[i] = state_.active.back();
      state_.active.pop_back();
    }
  }
  if (now >= keep_alive_at_) keep_alive(now);
  state_.wake_by(keep_alive_at_);
}

void Roaming::keep_alive(Instant now) {
  keep_alive_at_ = Instant::infinite_future();
  for (Rank slot = 0; slot < state_.peers.size(); ++slot) {
    Peer& peer = state_.peers[slot];
    if (!peer.current.known() || is_loopback(peer.current)) continue;
    if (now - peer.sent_at >= state_.pause()) {
      peer.sent_at = now;
      ++state_.counters.keep_alives;
      state_.put_out({slot, peer.current, {}});
    }
    keep_alive_at_ = std::min(keep_alive_at_, peer.sent_at + state_.pause());
    if (suspect(now, slot)) keep_alive_at_ = std::min(keep_alive_at_, silent_at(peer));
  }
}

// Begins to challenge the present address if the peer was silent for kSilentFor while operations
// are open. Both sides send often then, so silence means that the path may be lost. Returns whether
// to check for silence again.
bool Roaming::suspect(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  if (!state_.busy || !peer.settled || peer.present.known()) return false;
  if (now < silent_at(peer)) return true;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.suspected = true;
  state_.activate(now, slot);
  return false;
}

// Looks for a relay for a peer whose path is lost. The peer's own address is challenged for ever,
// because the path may come back.
void Roaming::lose_path(Instant now, Rank slot) {
  Peer& peer = state_.peers[slot];
  ++state_.counters.silent;
  peer.settled = false;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.present.told = true;
  relays_.on_lost(now, slot);
  state_.activate(now, slot);
}

}  // namespace leeway::seal
