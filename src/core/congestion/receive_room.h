// Room in a receiver's own socket. Tells peers how many of their datagrams the socket dropped, and
// limits how much they may have in flight.
//
// The system counts the drops of a socket, but not of each sender. Datagrams are numbered, so the
// receiver knows how many datagrams of each sender are missing. It divides the drops among senders
// in proportion to their missing datagrams, and gives no sender more drops than datagrams are
// missing. Senders then know that the network did not lose the dropped datagrams.
//
// Until the first drop nothing is limited. From then on, all peers together may have as much in
// flight as the host reads in a round trip, plus a part of the buffer. Both amounts grow while
// nothing is dropped. After ten seconds without drops there is no limit any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace leeway::congestion {

class ReceiveRoom {
 public:
  // Counters of one peer's path.
  struct Arrived {
    std::uint32_t missing = 0;  // missing numbers up to the largest, modulo 2^32
    std::uint32_t bytes = 0;    // bytes that arrived, modulo 2^32
    Duration rtt{0};
  };

  // Call it again and again, with the present counters. `drops`: the socket's drops since it was
  // made. `socket_bytes`: size of its buffer. `arrived`: by peer.
  void look(Instant now, std::uint64_t drops, std::size_t socket_bytes,
            std::span<const Arrived> arrived);

  // Bytes that the peer may have in flight; UINT32_MAX if not limited.
  std::uint32_t grant(std::size_t peer) const;
  // Number of the peer's datagrams that were dropped here so far, modulo 2^16.
  std::uint16_t drops(std::size_t peer) const { return peers_[peer].drops; }

 private:
  struct Peer {
    Arrived arrived;
    std::uint32_t grown = 0;  // newly missing since the previous look
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
  std::uint64_t pending_ = 0;  // drops that are not matched with missing numbers yet
  Instant dropped_at_{0};
  Instant window_began_{0};
  std::uint64_t window_bytes_ = 0;
  double arrival_rate_ = 0;  // bytes per second, in the last window
  std::size_t active_ = 0;   // peers, in this window
  std::size_t sharing_ = 1;  // peers, in the last window
  double rate_ = 0;          // bytes per second that the host reads
  double slack_ = 0;         // bytes of the buffer; 0 if not limited
  Instant cut_at_{0};
  Instant adapted_at_{0};
};

}  // namespace leeway::congestion
