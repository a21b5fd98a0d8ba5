// Follows the address of each peer. Peers are known by their tags (packet.h). A peer's address
// changes if it moves, or if something in between translates addresses.
//
// It does no I/O. The caller tells which peer's datagram was opened and from where it came. Roaming
// answers with path messages to seal and send, and with moves. Rules (WIRE 9):
//
//   * Only the newest datagram of a peer, opened from another address, makes that address worth a
//     challenge. Replayed or forged datagrams never get here, and overtaken ones start nothing.
//   * With a new address the present one is challenged, too. Traffic moves only if the new one
//     answers and the present one, asked several times, does not. So an attacker who copies
//     datagrams on their way, and sends them on from its own address, takes no traffic away.
//   * After a move the former address is challenged for a while. If it answers, traffic goes back.
//   * An address that has not answered gets at most three times the bytes that came from it.
//
// If a peer is found at an address that nobody was told, the others are told. So two processes
// behind translators learn each other's addresses from a third that both reach.
//
// Addresses that a peer may have from the start (candidates) are challenged together. The one with
// the shortest round trip wins.
//
// A peer may have no direct path, from the start or since its path fell silent. It is then
// challenged through several other peers at once. The first one by which it answers becomes its
// relay (WIRE 9.8). The peer's own addresses are challenged all the while, and one that answers
// takes traffic back.
//
// Roaming follows addresses; RelaySearch finds relays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/network_address.h"
#include "base/time.h"
#include "seal/path_message.h"
#include "seal/relay_search.h"
#include "seal/roaming_state.h"

namespace leeway::seal {

class Roaming {
 public:
  using Outgoing = RoamingState::Outgoing;
  using Move = RoamingState::Move;
  using Counters = RoamingState::Counters;

  // A peer gets a datagram at least this often, because address translators forget silent peers.
  // Some do so after 30 s.
  static constexpr Duration kKeepAlive = std::chrono::seconds(15);
  // While operations are open, a path on which nothing came for this time is challenged.
  static constexpr Duration kSilentFor = std::chrono::milliseconds(1250);

  // `seed` makes the challenges of different processes differ.
  explicit Roaming(std::uint64_t seed, Duration keep_alive = kKeepAlive)
      : state_(seed, keep_alive) {}

  // Adds a peer, at the first candidate until another one has answered. At least one candidate is
  // needed, and at most RoamingState::kTrialsMax + 1 are used. `name`: the peer's name among all
  // processes; 0 if it has none.
  void meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
            std::uint64_t name = 0);
  bool knows(Rank slot) const {
    return slot < state_.peers.size() && state_.peers[slot].current.known();
  }
  const NetworkAddress& address_of(Rank slot) const { return state_.peers[slot].current; }
  // Returns whether the peer's present address has answered, and has not been found silent since.
  bool settled(Rank slot) const { return state_.peers[slot].settled; }
  // Returns the peer's relay; kNoRank if traffic goes straight to the peer's address.
  Rank via(Rank slot) const { return relays_.via(slot); }

  // Call it when a datagram of the peer was opened that came from the peer's present address.
  void on_heard(Instant now, Rank slot) {
    state_.peers[slot].heard_at = now;
    if (!state_.peers[slot].settled) [[unlikely]]
      ask_soon(now, slot);
  }
  // Call it when a datagram was opened, from whatever address it came.
  void on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                 bool newest);
  // Call it after on_opened() if the datagram was a path message.
  void on_message(Instant now, Rank slot, const NetworkAddress& source, const PathMessage& message);
  // Takes in a path message of the peer that came through the relay `via`, so that it tells nothing
  // about the peer's address.
  void on_relayed_message(Instant now, Rank slot, Rank via, const PathMessage& message);
  // Call it when anything was sealed for the peer.
  void on_sent(Instant now, Rank slot) { state_.peers[slot].sent_at = now; }

  // `busy`: whether operations are open from now on.
  void set_busy(Instant now, bool busy);

  void on_wake(Instant now);
  Instant next_wake() const { return state_.wake_at; }

  // Returns the next message to seal and send; nullopt if there are no more.
  std::optional<Outgoing> poll() { return state_.poll(); }
  // Returns a peer whose traffic must go elsewhere from now on; nullopt if none is left.
  std::optional<Move> poll_move() { return state_.poll_move(); }

  const Counters& counters() const { return state_.counters; }
  // This process's address as a peer saw it last. Not known() if no peer has told it.
  const NetworkAddress& seen_at() const { return seen_at_; }

 private:
  using Peer = RoamingState::Peer;

  Place place(Instant now, const NetworkAddress& address, std::uint64_t allowance);
  void begin_trial(Instant now, Rank slot, const NetworkAddress& source, std::uint64_t allowance);
  void ask(Instant now, Rank slot, Place& at, Duration pause);
  void ask_soon(Instant now, Rank slot);
  bool wake_peer(Instant now, Rank slot);
  void wake_present(Instant now, Rank slot);
  void wake_trials(Instant now, Rank slot);
  void wake_former(Instant now, Rank slot);
  void wake_tells(Instant now, Rank slot);
  void on_whereabouts(Instant now, const PathMessage& message);
  void on_answer(Instant now, Rank slot, const NetworkAddress& source, std::uint64_t token);
  void settle(Instant now, Rank slot, Place& at);
  void try_to_move(Instant now, Rank slot);
  void refuse_trials(Instant now, Peer& peer);
  void move(Instant now, Rank slot, const Place& to);
  void keep_alive(Instant now);
  bool suspect(Instant now, Rank slot);
  Instant silent_at(const Peer& peer) const {
    return std::max(peer.heard_at, state_.busy_since) + kSilentFor;
  }
  void lose_path(Instant now, Rank slot);

  RoamingState state_;
  RelaySearch relays_{state_};
  Instant keep_alive_at_ = Instant::infinite_future();
  NetworkAddress seen_at_;
};

}  // namespace leeway::seal
