// What a receiver's own socket has room for: how peers hear that it dropped their datagrams, and
// how much they may have under way.
//
// The system counts drops for a socket, and not for its senders. Each sender's datagrams are
// numbered, so the receiver knows how many of each are missing: drops are shared out as the missing
// are, and no peer is told of more than it misses. Peers then know that the network did not lose
// these.
//
// Until the first drop nothing is limited. From then on all peers together may have under way what
// the host took in a round trip, and a part of the buffer beside it; both grow while nothing is
// dropped, and after a while there is no limit any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace leeway::congestion {

class ReceiveRoom {
 public:
  // What arrived of a peer, as the counters of its path stand.
  struct Arrived {
    std::uint32_t missing = 0;  // of its numbers up to the largest, modulo 2^32
    std::uint32_t bytes = 0;    // modulo 2^32
    Duration rtt{0};
  };

  // `drops`: of the socket, since it was made; it holds `socket_bytes`. `arrived`: by peer.
  void look(Instant now, std::uint64_t drops, std::size_t socket_bytes,
            std::span<const Arrived> arrived);

  // Bytes that the peer may have under way; UINT32_MAX: not limited.
  std::uint32_t grant(std::size_t peer) const;
  // Of its datagrams, dropped here so far; modulo 2^16.
  std::uint16_t drops(std::size_t peer) const { return peers_[peer].drops; }

 private:
  struct Peer {
    Arrived arrived;
    std::uint32_t grown = 0;  // missing since the look before
    std::uint16_t drops = 0;
    bool active = false;  // sent something in this window
  };

  void share_out(std::uint64_t missing);
  void measure(Instant now, std::uint64_t bytes);
  void adapt(Instant now, bool dropped, std::size_t socket_bytes);
  bool limited() const { return slack_ > 0; }

  std::vector<Peer> peers_;
  bool looked_ = false;
  std::uint64_t drops_seen_ = 0;
  std::uint64_t pending_ = 0;  // drops whose numbers are not known to be missing yet
  Instant dropped_at_{0};
  Instant window_began_{0};
  std::uint64_t window_bytes_ = 0;
  double arrival_rate_ = 0;  // bytes per second, of the last window
  std::size_t active_ = 0;   // peers, in this window
  std::size_t sharing_ = 1;  // peers, in the last window
  double rate_ = 0;          // bytes per second that the host takes
  double slack_ = 0;         // of the buffer; 0: not limited
  Instant cut_at_{0};
  Instant adapted_at_{0};
};

}  // namespace leeway::congestion
