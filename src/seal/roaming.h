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

  struct Outgoing {
    Rank slot = kNoRank;
    NetworkAddress to;
    PathMessage message;
  };
  struct Move {
    Rank slot = kNoRank;
    NetworkAddress to;
    bool same_host = false;  // only the port is another
  };
  struct Counters {
    std::uint64_t challenges = 0;  // sent
    std::uint64_t moves = 0;
    std::uint64_t returns = 0;  // of these, to the former address
    std::uint64_t refused = 0;  // addresses on trial while the present one answered
    std::uint64_t keep_alives = 0;
    std::uint64_t told = 0;  // messages to peers about where others are
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
  // Whether the present address of the peer has ever answered.
  bool settled(Rank slot) const { return peers_[slot].settled; }

  // A datagram of the peer was opened.
  void on_opened(Instant now, Rank slot, const NetworkAddress& source, std::size_t bytes,
                 bool newest);
  // It was a path message.
  void on_message(Instant now, Rank slot, const NetworkAddress& source, const PathMessage& message);
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
  struct Peer {
    NetworkAddress current;
    bool settled = false;
    bool active = false;  // is in active_
    Duration rtt{0};      // of current; 0: not known
    Place present;        // current, where it is asked
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
  static Duration round_trip(const Peer& peer);
  void put_out(const Outgoing& outgoing);
  void wake_by(Instant at) { wake_at_ = std::min(wake_at_, at); }

  Duration pause() const { return busy_ ? std::min(idle_pause_, kKeepAliveBusy) : idle_pause_; }

  const std::uint64_t seed_;
  const Duration idle_pause_;
  bool busy_ = false;
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
