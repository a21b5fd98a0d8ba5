// Where each peer is. A peer's name is its tag (packet.h); its address may change, because it
// moved, or because something between the two translates addresses.
//
// Sans-IO: no socket, no clock. It is told what was opened of whom and from where, and gives path
// messages to seal and send, and moves. Rules (WIRE 9):
//
//   * Only the newest datagram of a peer, opened from another address, makes that address worth a
//     challenge. What is replayed, forged or overtaken never gets here or starts nothing.
//   * With the challenge of the new address the present one is challenged, too. Traffic moves only
//     if the new one answers and the present one does not, asked several times. So whoever copies
//     datagrams on their way and sends them on from an address of his own takes no traffic away.
//   * After a move the former address is challenged for a while. If it answers, traffic goes back.
//   * To an address that has not answered go at most three times the bytes that came from it.
//
// Where a peer is found at an address that nobody was told, the others are told: two processes
// behind translators learn of each other's addresses by one that both reach.
//
// Addresses that a peer may have from the start (candidates) are challenged together; the one with
// the shortest round trip wins.
//
// A peer without a path of its own, from the start or since its path is silent, is asked through
// others that have one, several at once. The first one through whom it answers relays for it
// (WIRE 9.8). Its own addresses are asked all the while, and one that answers takes traffic back.
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
  // Candidates of a peer beside its first address; addresses on trial at a time.
  static constexpr std::size_t kTrialsMax = 4;
  // A peer hears something so often at least, or what translates addresses may forget it. Mappings
  // of 30 s exist.
  static constexpr Duration kKeepAlive = std::chrono::seconds(15);
  // The same while operations are open: a peer that only waits must be heard if its address
  // changes.
  static constexpr Duration kKeepAliveBusy = std::chrono::seconds(1);
  // A peer that no address of its own has answered for is looked for through others after so long.
  static constexpr Duration kRelayAfter = std::chrono::seconds(1);
  // While operations are open, a path that brought nothing for so long is asked whether it lives.
  static constexpr Duration kSilentFor = std::chrono::milliseconds(1250);

  struct Outgoing {
    Rank slot = kNoRank;
    NetworkAddress to;
    PathMessage message;
    Rank via = kNoRank;  // through this peer, who is asked where it is itself; `to` does not matter
  };
  struct Move {
    Rank slot = kNoRank;
    NetworkAddress to;
    bool same_host = false;  // only the port is another
    Rank via = kNoRank;      // through this peer from now on; `to` does not matter
  };
  struct Counters {
    std::uint64_t challenges = 0;  // sent
    std::uint64_t moves = 0;
    std::uint64_t returns = 0;  // of these, to the former address
    std::uint64_t refused = 0;  // addresses on trial while the present one answered
    std::uint64_t keep_alives = 0;
    std::uint64_t told = 0;    // messages to peers about where others are
    std::uint64_t relays = 0;  // how often a peer was given a relay, or another one
    std::uint64_t silent = 0;  // paths that were there and answered no more
  };

  // `seed` makes the challenges of two processes differ.
  explicit Roaming(std::uint64_t seed, Duration keep_alive = kKeepAlive)
      : seed_(seed), idle_pause_(keep_alive) {}

  // The peer is at the first of these until another has answered. At least one; kTrialsMax + 1 are
  // looked at.
  // `name`: all who know the peer know it by this.
  void meet(Instant now, Rank slot, std::span<const NetworkAddress> candidates,
            std::uint64_t name = 0);
  bool knows(Rank slot) const { return slot < peers_.size() && peers_[slot].current.known(); }
  const NetworkAddress& address_of(Rank slot) const { return peers_[slot].current; }
  // Whether the present address of the peer has answered, and was not found silent since.
  bool settled(Rank slot) const { return peers_[slot].settled; }
  // Through whom traffic to the peer goes; kNoRank: straight to its address.
  Rank via(Rank slot) const { return peers_[slot].help.via; }

  // A datagram of the peer was opened that came from its present address.
  void on_heard(Instant now, Rank slot) {
    peers_[slot].heard_at = now;
    if (!peers_[slot].settled) [[unlikely]]
      ask_soon(now, slot);
  }
  // From whatever address.
  void on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                 bool newest);
  // It was a path message.
  void on_message(Instant now, Rank slot, const NetworkAddress& source, const PathMessage& message);
  // One of the peer came through another. It says nothing of the peer's address.
  void on_relayed_message(Instant now, Rank slot, Rank via, const PathMessage& message);
  // Anything was sealed for the peer.
  void on_sent(Instant now, Rank slot) { peers_[slot].sent_at = now; }

  // Operations are open from now on, or none is any more.
  void set_busy(Instant now, bool busy);

  void on_wake(Instant now);
  Instant next_wake() const { return wake_at_; }

  // What is to be sealed and sent now; nothing: no more.
  std::optional<Outgoing> poll();
  // Where traffic to a peer is to go from now on; nothing: no more.
  std::optional<Move> poll_move();

  const Counters& counters() const { return counters_; }
  // Where this process was seen last by a peer. Unknown: by none.
  const NetworkAddress& seen_at() const { return seen_at_; }

 private:
  // An address that is asked whether the peer is there.
  struct Place {
    NetworkAddress address;
    std::uint64_t token = 0;  // low byte: how often it was asked
    Instant began;
    Instant asked_at;
    Instant next_at;
    Instant until = Instant::infinite_future();  // it is given up then
    std::uint64_t allowance = 0;                 // bytes that may go there before it answers
    bool told = false;  // a candidate: known from elsewhere than from where datagrams came
    bool answered = false;
    bool silent = false;  // asked often enough
    Duration rtt{0};

    std::uint64_t asked() const { return token & 0xFF; }
    bool known() const { return address.known(); }
  };
  // How a peer without a path is reached.
  struct Help {
    Rank via = kNoRank;       // through whom
    bool searching = true;    // nobody answers for it, or via did not answer any more
    Rank hint = kNoRank;      // through whom the peer asked us last
    Rank next = 0;            // where the search goes on
    std::uint64_t token = 0;  // low byte: how often it was asked
    Instant began;            // the asking with this token
    Instant asked_at;
    Instant next_at = Instant::infinite_future();
    Duration rtt{0};
  };
  struct Peer {
    NetworkAddress current;
    bool settled = false;
    bool active = false;     // is in active_
    bool suspected = false;  // its present address is asked because it is silent
    Instant met_at;
    std::optional<Instant> moved_at;  // the latest time; none: never
    Instant heard_at;                 // anything, from its own address
    Help help;
    Duration rtt{0};  // of current; 0: not known
    Place present;    // current, where it is asked
    std::array<Place, kTrialsMax> trials;
    Place former;
    NetworkAddress refused;  // the latest one that was on trial in vain
    Instant refused_until;
    Instant trial_began;
    std::uint64_t name = 0;
    int tells_left = 0;  // how often others are still to be told where it is
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
  std::uint64_t places_ = 0;  // ever
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
