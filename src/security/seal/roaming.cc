#include "seal/roaming.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// Unanswered challenges after which the present address counts as silent. At 10 % loss both ways
// one in four thousand trials finds a working address silent.
constexpr std::uint64_t kAsksOfPresent = 5;
// Challenges sent to an address that another peer told.
constexpr std::uint64_t kAsksOfWhereabouts = 8;
// How often the other peers are told an address, and how many of them at a time.
constexpr int kTells = 3;
constexpr Duration kTellMoveAgain = 250ms;
constexpr std::size_t kToldMax = 64;
// An address on trial is given up after this time.
constexpr Duration kTrialFor = 3s;
constexpr Duration kProbePauseMin = 2ms;
constexpr Duration kProbePauseMax = 1s;
constexpr Duration kFirstPause = 10ms;  // for an address with unknown round trip
constexpr Duration kHeardPause = 50ms;  // for an address that is heard, and has not answered
constexpr Duration kRoundTripMin = 5ms;
// Time for a candidate that answers later than the first one. It wins if its round trip is a
// quarter less.
constexpr Duration kComparing = 200ms;
// An address that was tried without success is not tried again for this time.
constexpr Duration kRefusedFor = 1s;
// Least time between new trials of one peer when there is no free place for them.
constexpr Duration kTrialsApart = 100ms;
// Time for which the former address may come back.
constexpr Duration kFormerFor = 30s;
// Candidates are challenged this often at first, and then every kSlowly.
constexpr std::uint64_t kAsksOfCandidate = 30;
constexpr Duration kSlowly = 30s;

constexpr std::size_t kOutgoingMax = 1024;
constexpr std::uint64_t kCandidateAllowance = UINT64_MAX / 2;
// A sealed challenge without the headers of IP and UDP.
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

std::uint64_t Roaming::new_token() {
  const std::uint64_t place = places_++;
  return keyed_hash(seed_, 0x50415448, static_cast<std::uint32_t>(place),
                    static_cast<std::uint32_t>(place >> 32), 0) &
         ~std::uint64_t{0xFF};
}

Roaming::Place Roaming::place(Instant now, const NetworkAddress& address, std::uint64_t allowance) {
  Place at;
  at.address = address;
  at.token = new_token();
  at.began = at.next_at = now;
  at.allowance = allowance;
  return at;
}

void Roaming::meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
                   std::uint64_t name) {
  LEEWAY_ASSERT(!candidates.empty() && candidates[0].known());
  if (slot >= peers_.size()) peers_.resize(slot + std::size_t{1});
  if (out_.empty()) out_.resize(kOutgoingMax);
  active_.reserve(peers_.size());
  moves_.reserve(2 * peers_.size());
  Peer& peer = peers_[slot];
  LEEWAY_ASSERT(!peer.current.known());
  peer.current = candidates[0];
  peer.name = name;
  peer.sent_at = peer.met_at = peer.heard_at = now;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.present.told = true;
  await_help(now, slot, kRelayAfter);
  std::size_t used = 0;
  for (const NetworkAddress& candidate : candidates.subspan(1)) {
    if (used == kTrialsMax || !candidate.known()) break;
    if (candidate == peer.current || trial_at(peer, candidate) != nullptr) continue;
    peer.trials[used] = place(now, candidate, kCandidateAllowance);
    peer.trials[used++].told = true;
  }
  activate(now, slot);
  if (is_loopback(peer.current)) return;
  keep_alive_at_ = std::min(keep_alive_at_, now + pause());
  wake_by(keep_alive_at_);
}

Roaming::Place* Roaming::trial_at(Peer& peer, const NetworkAddress& address) {
  for (Place& trial : peer.trials) {
    if (trial.known() && trial.address == address) return &trial;
  }
  return nullptr;
}

void Roaming::activate(Instant now, Rank slot) {
  wake_by(now);
  if (peers_[slot].active) return;
  peers_[slot].active = true;
  active_.push_back(slot);
}

void Roaming::on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                        bool newest) {
  Peer& peer = peers_[slot];
  if (source == peer.current) return on_heard(now, slot);
  if (Place* const trial = trial_at(peer, source)) {
    trial->allowance = std::min(trial->allowance + 3 * bytes, kCandidateAllowance);
    wake_by(trial->next_at);
    return;
  }
  if (newest) begin_trial(now, slot, source, 3 * bytes);
}

void Roaming::begin_trial(Instant now, Rank slot, const NetworkAddress& source,
                          std::uint64_t allowance) {
  Peer& peer = peers_[slot];
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
  activate(now, slot);
}

void Roaming::on_message(Instant now, Rank slot, const NetworkAddress& source,
                         const PathMessage& message) {
  switch (message.kind) {
    case PathMessage::Kind::challenge:
      seen_at_ = message.seen;
      if (Place* const trial = trial_at(peers_[slot], source); trial != nullptr && !trial->answered)
        trial->allowance -= std::min(trial->allowance, kChallengeBytes);
      put_out({slot, source, {PathMessage::Kind::answer, message.token, source}});
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

// Begins a trial of an address that another peer told. The address must answer like any other.
void Roaming::on_whereabouts(Instant now, const PathMessage& message) {
  if (message.token == 0 || !message.seen.known()) return;
  for (Rank slot = 0; slot < peers_.size(); ++slot) {
    Peer& peer = peers_[slot];
    if (peer.name != message.token || peer.current == message.seen) continue;
    if (trial_at(peer, message.seen) == nullptr)
      begin_trial(now, slot, message.seen, kAsksOfWhereabouts * kChallengeBytes);
  }
}

// The answer of the present or the former address counts from wherever it came: it shows that
// datagrams sent there reach the peer.
void Roaming::on_answer(Instant now, Rank slot, const NetworkAddress& source, std::uint64_t token) {
  Peer& peer = peers_[slot];
  const auto answers = [&](Place& at) {
    constexpr std::uint64_t kPlace = ~std::uint64_t{0xFF};
    if (!at.known() || at.asked() == 0 || (at.token & kPlace) != (token & kPlace)) return false;
    const Instant asked = at.token == token ? at.asked_at : at.began;
    at.answered = true;
    at.rtt = std::max<Duration>(now - asked, Duration(1));
    return true;
  };
  if (answers(peer.present)) {
    peer.heard_at = now;
    peer.rtt = peer.present.rtt;
    if (!peer.settled) return settle(now, slot, peer.present);
    return refuse_trials(now, peer);
  }
  if (answers(peer.former)) {
    ++counters_.returns;
    peer.refused = peer.current;
    peer.refused_until = now + kRefusedFor;
    const Place back = peer.former;
    move(now, slot, back);
    peer.former = {};
    return;
  }
  Place* const trial = trial_at(peer, source);
  if (trial == nullptr || trial->answered || !answers(*trial)) return;
  trial->allowance = kCandidateAllowance;
  if (!peer.settled && trial->told) return settle(now, slot, *trial);
  try_to_move(now, slot);
}

// Takes the first candidate that answers. Others have kComparing to be better.
void Roaming::settle(Instant now, Rank slot, Place& at) {
  Peer& peer = peers_[slot];
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
  end_help(now, slot);
  peer.present = {};
  for (Place& trial : peer.trials) {
    if (trial.known()) trial.until = now + kComparing;
  }
  activate(now, slot);
}

// Ends all trials: the present address works.
void Roaming::refuse_trials(Instant now, Peer& peer) {
  for (Place& trial : peer.trials) {
    if (!trial.known()) continue;
    peer.refused = trial.address;
    peer.refused_until = now + kRefusedFor;
    ++counters_.refused;
    trial = {};
  }
  peer.present = {};
  peer.suspected = false;
}

void Roaming::try_to_move(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
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
  Peer& peer = peers_[slot];
  const bool same_host = peer.current.ip == to.address.ip && peer.help.via == kNoRank;
  peer.former = place(now, peer.current, kCandidateAllowance);
  peer.current = to.address;
  peer.rtt = to.rtt;
  peer.present = {};
  peer.trials = {};
  peer.heard_at = now;
  peer.suspected = false;
  ++counters_.moves;
  note_move({slot, to.address, same_host});
  peer.former.next_at = now + round_trip(peer);
  peer.tells_left = peer.name == 0 ? 0 : kTells;
  peer.tell_at = now;
  peer.moved_at = now;
  activate(now, slot);
}

void Roaming::note_move(const Move& move) {
  std::erase_if(moves_, [&](const Move& earlier) { return earlier.slot == move.slot; });
  moves_.push_back(move);
}

Duration Roaming::round_trip(const Peer& peer) {
  Duration longest = std::max<Duration>(peer.rtt, kRoundTripMin);
  for (const Place& trial : peer.trials) {
    if (trial.known() && trial.answered) longest = std::max(longest, trial.rtt);
  }
  return std::min<Duration>(longest, 500ms);
}

void Roaming::ask(Instant now, Rank slot, Place& at, Duration pause) {
  at.next_at = now + std::clamp<Duration>(pause, kProbePauseMin, kSlowly);
  if (at.allowance < kChallengeBytes) return;
  if (at.allowance < kCandidateAllowance) at.allowance -= kChallengeBytes;
  if (at.asked() < 0xFF) ++at.token;
  at.asked_at = now;
  ++counters_.challenges;
  put_out({slot, at.address, {PathMessage::Kind::challenge, at.token, at.address}});
}

// The peer is heard from its present address, which has not answered yet. It has become reachable
// since the last challenge, and the next challenge may be a second away. So it is sent sooner.
void Roaming::ask_soon(Instant now, Rank slot) {
  Place& at = peers_[slot].present;
  if (!at.known()) return;
  at.next_at = std::min(at.next_at, std::max(now, at.asked_at + kHeardPause));
  wake_by(at.next_at);
}

void Roaming::wake_present(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  Place& at = peer.present;
  if (!at.known() || at.silent || now < at.next_at) return;
  if (!peer.settled) {
    ask(now, slot, at, pause_after(at.asked()));
    if (at.asked() > kAsksOfPresent) try_to_move(now, slot);
    return;
  }
  if (at.asked() < kAsksOfPresent) {
    const bool last = at.asked() + 1 == kAsksOfPresent;
    return ask(now, slot, at, last ? round_trip(peer) : round_trip(peer) / 2);
  }
  at.silent = true;
  const bool lost = busy_ && now >= silent_at(peer);
  try_to_move(now, slot);
  peer.suspected = false;
  if (lost && peer.present.silent) lose_path(now, slot);
}

void Roaming::wake_trials(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
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
  // No trial succeeded. The present address is not known to work either, but it stays.
  if (!any && peer.settled && !peer.suspected) peer.present = {};
}

void Roaming::wake_former(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  Place& at = peer.former;
  if (!at.known() || now < at.next_at) return;
  if (now - at.began >= kFormerFor) {
    at = {};
    return;
  }
  ask(now, slot, at, std::max<Duration>(now - at.began, round_trip(peer)));
}

// Tells others the peer's address. Among many peers, each tells those behind it in rank order. The
// peer itself is told the addresses of those that moved lately, too: earlier messages went to its
// former address.
void Roaming::wake_tells(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  if (peer.tells_left == 0 || now < peer.tell_at) return;
  --peer.tells_left;
  peer.tell_at = now + kTellMoveAgain;
  for (std::size_t i = 1; i < std::min(peers_.size(), kToldMax); ++i) {
    const Rank other = static_cast<Rank>((slot + i) % peers_.size());
    if (!peers_[other].current.known()) continue;
    ++counters_.told;
    put_out({other,
             peers_[other].current,
             {PathMessage::Kind::whereabouts, peer.name, peer.current},
             via(other)});
    const Peer& moved = peers_[other];
    if (moved.name == 0 || !moved.moved_at || now - *moved.moved_at > kFormerFor) continue;
    ++counters_.told;
    put_out({slot,
             peer.current,
             {PathMessage::Kind::whereabouts, moved.name, moved.current},
             via(slot)});
  }
}

// Returns whether the peer still has anything to do.
bool Roaming::wake_peer(Instant now, Rank slot) {
  wake_present(now, slot);
  wake_trials(now, slot);
  wake_former(now, slot);
  wake_tells(now, slot);
  wake_help(now, slot);
  const Peer& peer = peers_[slot];
  bool active = peer.tells_left > 0 || !peer.settled;
  if (peer.tells_left > 0) wake_by(peer.tell_at);
  if (!peer.settled) wake_by(peer.help.next_at);
  const auto await = [&](const Place& at) {
    if (!at.known()) return;
    active = true;
    const Instant next = at.answered || at.silent ? at.until : std::min(at.next_at, at.until);
    wake_by(std::max(next, now + Duration(1)));
  };
  await(peer.present);
  for (const Place& trial : peer.trials) await(trial);
  await(peer.former);
  return active;
}

void Roaming::set_busy(Instant now, bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  busy_since_ = now;
  if (!busy || keep_alive_at_ == Instant::infinite_future()) return;
  for (const Rank slot : active_) {
    Instant& at = peers_[slot].help.next_at;
    if (peers_[slot].help.via != kNoRank) at = std::min(at, now + pause() / 2);
  }
  keep_alive_at_ = std::min(keep_alive_at_, now + pause());
  wake_by(keep_alive_at_);
}

void Roaming::on_wake(Instant now) {
  if (now < wake_at_) return;
  wake_at_ = Instant::infinite_future();
  for (std::size_t i = 0; i < active_.size();) {
    const Rank slot = active_[i];
    if (wake_peer(now, slot)) {
      ++i;
    } else {
      peers_[slot].active = false;
      active_[i] = active_.back();
      active_.pop_back();
    }
  }
  if (now >= keep_alive_at_) keep_alive(now);
  wake_by(keep_alive_at_);
}

void Roaming::keep_alive(Instant now) {
  keep_alive_at_ = Instant::infinite_future();
  for (Rank slot = 0; slot < peers_.size(); ++slot) {
    Peer& peer = peers_[slot];
    if (!peer.current.known() || is_loopback(peer.current)) continue;
    if (now - peer.sent_at >= pause()) {
      peer.sent_at = now;
      ++counters_.keep_alives;
      put_out({slot, peer.current, {}});
    }
    keep_alive_at_ = std::min(keep_alive_at_, peer.sent_at + pause());
    if (suspect(now, slot)) keep_alive_at_ = std::min(keep_alive_at_, silent_at(peer));
  }
}

// Begins to challenge the present address if it was silent for kSilentFor while busy: a peer sends
// as often as this process does while both have operations open. Returns whether silence is to be
// checked again.
bool Roaming::suspect(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  if (!busy_ || !peer.settled || peer.present.known()) return false;
  if (now < silent_at(peer)) return true;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.suspected = true;
  activate(now, slot);
  return false;
}

// Searches a relay for a peer whose path is lost. The path may come back, and is challenged for
// ever.
void Roaming::lose_path(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  ++counters_.silent;
  peer.settled = false;
  peer.present = place(now, peer.current, kCandidateAllowance);
  peer.present.told = true;
  await_help(now, slot, {});
  for (const Rank other : active_) {
    if (peers_[other].help.via == slot) peers_[other].help.next_at = now;
  }
  activate(now, slot);
}

void Roaming::put_out(const Outgoing& outgoing) {
  if (out_count_ == out_.size()) return;  // asked again later
  out_[(out_first_ + out_count_++) % out_.size()] = outgoing;
}

std::optional<Roaming::Outgoing> Roaming::poll() {
  if (out_count_ == 0) return std::nullopt;
  const Outgoing outgoing = out_[out_first_];
  out_first_ = (out_first_ + 1) % out_.size();
  --out_count_;
  return outgoing;
}

std::optional<Roaming::Move> Roaming::poll_move() {
  if (moves_.empty()) return std::nullopt;
  const Move move = moves_.back();
  moves_.pop_back();
  return move;
}

}  // namespace leeway::seal
