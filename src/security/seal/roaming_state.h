// State that the parts of Roaming share: the peers' addresses, messages to send, and when to wake.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/network_address.h"
#include "base/time.h"
#include "leeway/types.h"
#include "seal/path_message.h"

namespace leeway::seal {

// A series of challenges with one token, and the round trip that an answer shows.
struct Challenges {
  std::uint64_t token = 0;  // low byte: number of challenges so far, at most 255
  Instant began;
  Instant asked_at;
  Instant next_at = Instant::infinite_future();
  Duration rtt{0};

  void begin(Instant now, std::uint64_t new_token, Instant first_at) {
    token = new_token;
    began = now;
    next_at = first_at;
  }
  std::uint64_t asked() const { return token & 0xFF; }
  // Counts a challenge. Call it before the challenge is sent.
  void count(Instant now) {
    if (asked() < 0xFF) ++token;
    asked_at = now;
  }
  // Returns whether `answer` is the token of a challenge of this series.
  bool asked_with(std::uint64_t answer) const {
    return asked() != 0 && (token | 0xFF) == (answer | 0xFF);
  }
  // Takes in an answer for which asked_with() is true. Only the latest challenge's time is known.
  // So the round trip of an answer to an earlier challenge counts from the start of the series.
  void on_answer(Instant now, std::uint64_t answer) {
    rtt = std::max<Duration>(now - (answer == token ? asked_at : began), Duration(1));
  }
};

// An address that is challenged to find out whether the peer is there.
struct Place : Challenges {
  NetworkAddress address;
  Instant until = Instant::infinite_future();  // when it is given up
  std::uint64_t allowance = 0;                 // bytes that may go there before it answers
  bool told = false;                           // a candidate, which meet() named
  bool answered = false;
  bool silent = false;  // challenged often enough without an answer

  bool known() const { return address.known(); }
};

struct RoamingState {
  // Limit on a peer's candidates beside its first address, and on its addresses on trial at a time.
  static constexpr std::size_t kTrialsMax = 4;

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
  struct Peer {
    NetworkAddress current;
    bool settled = false;
    bool active = false;     // is in active
    bool suspected = false;  // its present address is challenged because it is silent
    Instant met_at;
    std::optional<Instant> moved_at;  // the latest time; unset if it never moved
    Instant heard_at;                 // last datagram from its own address
    Duration rtt{0};                  // round trip to `current`; 0 if not known
    Place present;                    // `current`, while it is challenged
    std::array<Place, kTrialsMax> trials;
    Place former;
    NetworkAddress refused;  // the latest address that was tried without success
    Instant refused_until;
    Instant trial_began;
    std::uint64_t name = 0;
    int tells_left = 0;  // how many more times others will be told its address
    Instant tell_at;
    Instant sent_at;

    // Returns the trial of an address; null if there is none.
    Place* trial_at(const NetworkAddress& address);
    // Returns the longest round trip of the peer's addresses, within bounds for pauses.
    Duration round_trip() const;
  };

  RoamingState(std::uint64_t token_seed, Duration keep_alive)
      : seed(token_seed), idle_pause(keep_alive) {}
  RoamingState(const RoamingState&) = delete;
  RoamingState& operator=(const RoamingState&) = delete;

  // Adds a peer and returns it.
  Peer& add(Rank slot);
  // Lets on_wake() look after the peer from now on.
  void activate(Instant now, Rank slot);
  std::uint64_t new_token();
  // Queues a message, or drops it if the queue is full. A later challenge makes up for it.
  void put_out(const Outgoing& outgoing);
  std::optional<Outgoing> poll();
  // Notes a move for poll_move(). It replaces an earlier move of the peer.
  void note_move(const Move& move);
  std::optional<Move> poll_move();
  void wake_by(Instant at) { wake_at = std::min(wake_at, at); }
  // Returns the longest time that may pass without a datagram to a peer.
  Duration pause() const;

  const std::uint64_t seed;
  const Duration idle_pause;
  bool busy = false;
  Instant busy_since;
  std::uint64_t tokens = 0;  // made so far
  std::vector<Peer> peers;   // by slot
  std::vector<Rank> active;
  std::vector<Outgoing> out;  // a ring
  std::size_t out_first = 0;
  std::size_t out_count = 0;
  std::vector<Move> moves;
  Instant wake_at = Instant::infinite_future();
  Counters counters;
};

}  // namespace leeway::seal
