// How ranks become a group: every rank tells rank 0 what it is and where its data socket listens;
// rank 0 checks that all agree and sends everybody the table of members. Messages:
// proto/README.md, section 7.
//
// join_group() blocks its caller, starts no thread, and leaves nothing running: no connection
// outlives it, so the death of rank 0 later disturbs nobody's control channel.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

class Log;

// A transport other than UDP that this process can use, or asked for and cannot.
struct TransportOffer {
  TransportKind kind = TransportKind::verbs;
  std::vector<std::byte> address;  // means something to the transport only; empty: cannot be used
  std::uint32_t datagram_bytes = 0;
  std::uint64_t receive_buffer_bytes = 0;
  std::string obstacle;  // why it cannot be used and what to do about it
};

// What this process brings to the meeting.
struct LocalConfiguration {
  Rank rank = 0;
  int size = 1;
  std::string rendezvous;  // "host:port" of rank 0, "[v6]:port" for IPv6; unused when size is 1
  std::string name = "world";
  std::uint32_t datagram_bytes = 0;        // largest datagram this rank can send and take over UDP
  std::uint64_t receive_buffer_bytes = 0;  // see TransportLimits
  std::uint32_t window_bytes = 0;          // equal on all ranks; 0 = derive
  std::uint64_t seed = 0;                  // rank 0's is used
  // 4 or 16 bytes; empty = the address by which rank 0 and this rank talk
  std::vector<std::byte> data_address;
  std::uint16_t data_port = 0;
  TransportKind transport = TransportKind::udp;  // asked for; equal on all ranks
  bool multicast = false;                        // equal on all ranks
  std::vector<TransportOffer> offers;
  Duration join_timeout = std::chrono::seconds(60);
};

// One transport between all ranks.
struct Lane {
  struct Member {
    std::vector<std::byte> address;  // UDP: 4 or 16 bytes, network order; else that of its offer
    std::uint16_t port = 0;          // UDP only
    std::uint64_t receive_buffer_bytes = 0;
  };
  TransportKind kind = TransportKind::udp;  // udp, verbs or ucx
  std::uint32_t datagram_bytes = 0;         // the minimum over all ranks
  std::vector<Member> members;              // by rank
};

// What all agreed on; the same bits on every rank.
struct Group {
  struct Multicast {
    std::vector<std::byte> address;  // 4 or 16 bytes, network order
    std::uint16_t port = 0;
  };
  std::uint32_t epoch = 0;  // random nonce of this incarnation, never 0
  std::uint64_t seed = 0;
  Lane datagrams;
  std::optional<Lane> exact;  // where exact calls may have UCX to themselves
  std::optional<Multicast> multicast;
};

// What strangers on the port may cost rank 0, and how long it stays to explain a failure. Tests
// shorten the times.
struct RendezvousLimits {
  // Connections that have not said who they are. Beyond this the oldest is closed; a rank that is
  // hit tries again.
  std::size_t half_open_max = 64;
  // From accepting a connection to its complete Hello, which a rank sends at once.
  Duration hello_timeout = std::chrono::seconds(3);
  // After a rank was rejected: how long rank 0 stays to tell the reason to ranks that have not come
  // yet.
  Duration linger = std::chrono::seconds(1);
};

// Meets the other ranks, or says within join_timeout (of the least patient rank) why that failed:
//   kInvalidArgument  this rank's own configuration makes no sense, or the host name does not exist
//   kUnavailable      rank 0 cannot listen, is absent, or ranks are missing; the text lists them
//   kMismatch         ranks disagree (rank taken twice, size, version, name, window, transport,
//                     multicast, address family); names both sides
//   kUnsupported      a rank cannot use the transport that all ask for; names the rank and says why
// When rank 0 rejects one rank, all ranks fail with the same text. With size 1 no network is
// touched. `log` may be null.
Result<Group> join_group(const LocalConfiguration& local, Log* log = nullptr,
                         const RendezvousLimits& limits = {});

}  // namespace leeway::rendezvous
