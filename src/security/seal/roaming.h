// Address of each peer. A peer's name is its tag (packet.h). Its address may change, because it
// moved, or because something between the two translates addresses.
//
// Sans-IO: no socket, no clock. The caller says which peer's datagrams were opened and where they
// came from. Roaming gives path messages to seal and send, and moves. Rules (WIRE 9):
//
//   * Only the newest datagram of a peer, opened from another address, makes that address worth a
//     challenge. Replayed or forged datagrams never get here, and overtaken ones start nothing.
//   * With the challenge of the new address the present one is challenged, too. Traffic moves only
//     if the new one answers and the present one, asked several times, does not. So an attacker
//     that copies datagrams on their way and sends them on from its own address takes no traffic
//     away.
//   * After a move the former address is challenged for a while. If it answers, traffic goes back.
//   * An address that has not answered gets at most three times the bytes that came from it.
//
// If a peer is found at an address that nobody was told, the others are told. So two processes
// behind translators learn each other's addresses from one that both reach.
//
// Addresses that a peer may have from the start (candidates) are challenged together. The one with
// the shortest round trip wins.
//
// A peer without a path of its own, from the start or since its path is silent, is asked through
// others that have one, several at once. The first one through which it answers relays for it (WIRE
// 9.8). Its own addresses are asked all the while, and one that answers takes traffic back.
//
// roaming.cc follows addresses, roaming_relays.cc finds relays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/network_address.h"
#include "base/time.h"
#include "seal/path_message.h"

namespace leeway::seal {

class Roaming {
 public:
  // Most candidates of a peer in addition to its first address, and most addresses on trial at a
  // time.
  static constexpr std::size_t kTrialsMax = 4;
  // Longest time without a datagram to a peer. After a longer one, address translators may forget
  // the peer. Mappings of 30 s exist.
  static constexpr Duration kKeepAlive = std::chrono::seconds(15);
  // The same while operations are open: a peer that only waits must be heard soon if its address
  // changes.
  static constexpr Duration kKeepAliveBusy = std::chrono::seconds(1);
  // Time after which a peer that has answered at no address of its own is looked for through
  // others.
  static constexpr Duration kRelayAfter = std::chrono::seconds(1);
  // While operations are open, a path that brought nothing for this time is challenged.
  static constexpr Duration kSilentFor = std::chrono::milliseconds(1250);

  struct Outgoing {
    Rank slot = kNoRank;
    NetworkAddress to;
    PathMessage message;
    Rank via = kNoRank;  // relay that forwards it; `to` does not matter then
  };
  struct Move {
    Rank slot = kNoRank;
    NetworkAddress to;
    bool same_host = false;  // only the port differs
    Rank via = kNoRank;      // relay from now on; `to` does not matter then
  };
  struct Counters {
    std::uint64_t challenges = 0;  // sent
    std::uint64_t moves = 0;
    std::uint64_t returns = 0;  // moves back to the former address
    std::uint64_t refused = 0;  // addresses on trial while the present one answered
    std::uint64_t keep_alives = 0;
    std::uint64_t told = 0;    // messages to peers about where others are
    std::uint64_t relays = 0;  // times a peer was given a relay, or another one
    std::uint64_t silent = 0;  // paths that worked and then did not answer any more
  };

  // `seed` makes the challenges of two processes differ.
  explicit Roaming(std::uint64_t seed, Duration keep_alive = kKeepAlive)
      : seed_(seed), idle_pause_(keep_alive) {}

  // Adds a peer. It counts as being at the first candidate until another one has answered. At least
  // one candidate is needed; kTrialsMax + 1 are used.
  // `name`: the name by which all processes that know the peer know it.
  void meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
            std::uint64_t name = 0);
  bool knows(Rank slot) const { return slot < peers_.size() && peers_[slot].current.known(); }
  const NetworkAddress& address_of(Rank slot) const { return peers_[slot].current; }
  // Returns whether the present address of the peer has answered, and was not found silent since.
  bool settled(Rank slot) const { return peers_[slot].settled; }
  // Relay through which traffic to the peer goes; kNoRank if it goes straight to its address.
  Rank via(Rank slot) const { return peers_[slot].help.via; }

  // Call it when a datagram of the peer was opened that came from its present address.
  void on_heard(Instant now, Rank slot) {
    peers_[slot].heard_at = now;
    if (!peers_[slot].settled) [[unlikely]]
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
  void on_sent(Instant now, Rank slot) { peers_[slot].sent_at = now; }

  // `busy`: operations are open from now on. Otherwise none is open any more.
  void set_busy(Instant now, bool busy);

  void on_wake(Instant now);
  Instant next_wake() const { return wake_at_; }

  // Returns the next message to seal and send; nullopt if there are no more.
  std::optional<Outgoing> poll();
  // Returns a peer whose traffic goes elsewhere from now on; nullopt if there are no more.
  std::optional<Move> poll_move();

  const Counters& counters() const { return counters_; }
  // The address of this process that a peer saw last. Unknown (not known()) if none has told.
  const NetworkAddress& seen_at() const { return seen_at_; }

 private:
  // An address that is challenged to find out whether the peer is there.
  struct Place {
    NetworkAddress address;
    std::uint64_t token = 0;  // low byte: number of challenges so far
    Instant began;
    Instant asked_at;
    Instant next_at;
    Instant until = Instant::infinite_future();  // when it is given up
    std::uint64_t allowance = 0;                 // bytes that may go there before it answers
    bool told = false;  // a candidate: known otherwise than from datagrams' sources
    bool answered = false;
    bool silent = false;  // challenged often enough without an answer
    Duration rtt{0};

    std::uint64_t asked() const { return token & 0xFF; }
    bool known() const { return address.known(); }
  };
  // State of reaching a peer without a path of its own.
  struct Help {
    Rank via = kNoRank;       // the relay
    bool searching = true;    // no relay answers for it, or `via` has stopped
    Rank hint = kNoRank;      // peer through which it asked us last
    Rank next = 0;            // peer where the search goes on
    std::uint64_t token = 0;  // low byte: number of challenges so far
    Instant began;            // when asking with this token began
    Instant asked_at;
    Instant next_at = Instant::infinite_future();
    Duration rtt{0};
  };
  struct Peer {
    NetworkAddress current;
    bool settled = false;
    bool active = false;     // is in active_
    bool suspected = false;  // its present address is challenged because it is silent
    Instant met_at;
    std::optional<Instant> moved_at;  // the latest time; unset if it never moved
    Instant heard_at;                 // last datagram from its own address
    Help help;
    Duration rtt{0};  // round trip to `current`; 0 if not known
    Place present;    // `current`, while it is challenged
    std::array<Place, kTrialsMax> trials;
    Place former;
    NetworkAddress refused;  // the latest address that was tried without success
    Instant refused_until;
    Instant trial_began;
    std::uint64_t name = 0;
    int tells_left = 0;  // how many more times others will be told its address
    Instant tell_at;
    Instant sent_at;
  };

  Place place(Instant now, const NetworkAddress& address, std::uint64_t allowance);
  Place* trial_at(Peer& peer, const NetworkAddress& address);
  void begin_trial(Instant now, Rank slot, const NetworkAddress& source, std::uint64_t allowance);
  void activate(Instant now, Rank slot);
  void ask(Instant now, Rank slot, Place& at, Duration pause);
  bool wake_peer(Instant now, Rank slot);
  void ask_soon(Instant now, Rank slot);
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
    return std::max(peer.heard_at, busy_since_) + kSilentFor;
  }
  void lose_path(Instant now, Rank slot);
  // roaming_relays.cc
  bool may_relay(Rank slot) const;
  void await_help(Instant now, Rank slot, Duration patience);
  void end_help(Instant now, Rank slot);
  void wake_help(Instant now, Rank slot);
  void search_help(Instant now, Rank slot);
  void ask_through(Instant now, Rank slot, Rank via);
  void take_hint(Instant now, Rank slot, Rank via);
  void on_help(Instant now, Rank slot, Rank via, std::uint64_t token);
  std::uint64_t new_token();
  void note_move(const Move& move);
  static Duration round_trip(const Peer& peer);
  void put_out(const Outgoing& outgoing);
  void wake_by(Instant at) { wake_at_ = std::min(wake_at_, at); }

  Duration pause() const { return busy_ ? std::min(idle_pause_, kKeepAliveBusy) : idle_pause_; }

  const std::uint64_t seed_;
  const Duration idle_pause_;
  bool busy_ = false;
  Instant busy_since_;
  std::uint64_t places_ = 0;  // made so far
  std::vector<Peer> peers_;   // by slot
  std::vector<Rank> active_;
  std::vector<Outgoing> out_;  // a ring
  std::size_t out_first_ = 0;
  std::size_t out_count_ = 0;
  std::vector<Move> moves_;
  Instant wake_at_ = Instant::infinite_future();
  Instant keep_alive_at_ = Instant::infinite_future();
  NetworkAddress seen_at_;
  Counters counters_;
};

}  // namespace leeway::seal
