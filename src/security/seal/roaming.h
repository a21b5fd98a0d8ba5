// Address of each peer. A peer's name is its tag (packet.h). Its address may change, because it
// moved, or because something between the two translates addresses.
//
// Sans-IO: no socket, no clock. The caller says which peer's datagrams were opened and where they
// came from. Roaming gives path messages to seal and send, and moves. Rules (WIRE 9):
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
// behind translators learn each other's addresses from one that both reach.
//
// Addresses that a peer may have from the start (candidates) are challenged together. The one with
// the shortest round trip wins.
//
// A peer may have no direct path, from the start or since its path fell silent. It is then
// challenged through other peers that have one, several at once. The first one through which it
// answers relays for it (WIRE 9.8). Its own addresses are challenged all the while, and one that
// answers takes traffic back.
//
// Roaming follows addresses, and RelaySearch finds relays.
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

  // Longest time without a datagram to a peer. After a longer one, address translators may forget
  // the peer. Mappings of 30 s exist.
  static constexpr Duration kKeepAlive = std::chrono::seconds(15);
  // While operations are open, a path that brought nothing for this time is challenged.
  static constexpr Duration kSilentFor = std::chrono::milliseconds(1250);

  // `seed` makes the challenges of two processes differ.
  explicit Roaming(std::uint64_t seed, Duration keep_alive = kKeepAlive)
      : state_(seed, keep_alive) {}

  // Adds a peer. It counts as being at the first candidate until another one has answered. At least
  // one candidate is needed, and no more than RoamingState::kTrialsMax + 1 are used. `name`: the
  // peer's name among all processes; 0 if it has none.
  void meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
            std::uint64_t name = 0);
  bool knows(Rank slot) const {
    return slot < state_.peers.size() && state_.peers[slot].current.known();
  }
  const NetworkAddress& address_of(Rank slot) const { return state_.peers[slot].current; }
  // Returns whether the present address of the peer has answered, and was not found silent since.
  bool settled(Rank slot) const { return state_.peers[slot].settled; }
  // Relay through which traffic to the peer goes; kNoRank if it goes straight to its address.
  Rank via(Rank slot) const { return relays_.via(slot); }

  // Call it when a datagram of the peer was opened that came from its present address.
  void on_heard(Instant now, Rank slot) {
    state_.peers[slot].heard_at = now;
    if (!state_.peers[slot].settled) [[unlikely]]
      ask_soon(now, slot);
  }
  // Call it when a datagram was opened, from whatever address it came.
  void on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                 bool newest);
  // Call it, too, if that datagram was a path message.
  void on_message(Instant now, Rank slot, const NetworkAddress& source, const PathMessage& message);
  // Takes a path message of the peer that came through the relay `via`. It says nothing of the
  // peer's address.
  void on_relayed_message(Instant now, Rank slot, Rank via, const PathMessage& message);
  // Call it when anything was sealed for the peer.
  void on_sent(Instant now, Rank slot) { state_.peers[slot].sent_at = now; }

  // `busy`: operations are open from now on. Otherwise none is open any more.
  void set_busy(Instant now, bool busy);

  void on_wake(Instant now);
  Instant next_wake() const { return state_.wake_at; }

  // Returns the next message to seal and send; nullopt if there are no more.
  std::optional<Outgoing> poll() { return state_.poll(); }
  // Returns a peer whose traffic goes elsewhere from now on; nullopt if there are no more.
  std::optional<Move> poll_move() { return state_.poll_move(); }

  const Counters& counters() const { return state_.counters; }
  // The address of this process that a peer saw last. Unknown (not known()) if none has told.
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
