// What a process brings to a meeting, and the resulting group.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "keys/joined_keys.h"
#include "leeway/options.h"
#include "leeway/rendezvous.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

// Returns true if this kind of transport sends datagrams by UDP, at least between hosts.
constexpr bool is_over_udp(TransportKind kind) {
  return kind == TransportKind::udp || kind == TransportKind::shm || kind == TransportKind::mixed;
}

// A transport other than UDP that this process can use, or that was asked for and cannot be used.
struct TransportOffer {
  TransportKind kind = TransportKind::verbs;
  std::vector<std::byte> address;  // its meaning is the transport's; empty if it cannot be used
  std::uint32_t datagram_bytes = 0;
  std::uint64_t receive_buffer_bytes = 0;
  std::string obstacle;  // why it cannot be used and what to do about it
};

// Shows ranks whether they run on one host and may share memory.
struct MemoryPlace {
  std::array<std::byte, 16> boot{};   // the kernel's boot id
  std::uint32_t user = 0;             // effective user id
  std::array<std::byte, 16> token{};  // random, of this rank's UdpEndpoint; zero: shares none

  bool shares() const { return token != std::array<std::byte, 16>{}; }
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

// Settings and offers that this process brings to the meeting.
struct LocalConfiguration {
  Rank rank = 0;
  int size = 1;
  // "host:port" of rank 0, "[v6]:port" for IPv6; unused when size is 1. If there is a store, see
  // Options::store.
  std::string rendezvous;
  std::shared_ptr<Rendezvous> store;  // null: one over TCP at `rendezvous`
  std::uint64_t restart_count = 0;    // ranks meet only if this and the name are equal
  std::string name = "world";
  // Random number of this rank's UDP socket (UdpEndpoint), equal in all groups that share the
  // socket.
  std::uint64_t process = 0;
  // Identity of the UdpEndpoint. Null if this rank has no secret; then no rank may have one.
  std::shared_ptr<const keys::OwnIdentity> identity;
  MemoryPlace memory;                      // of the UdpEndpoint
  std::uint64_t site = 0;                  // number of this rank's site, 0 if none is named
  bool insecure = false;                   // public addresses without a secret
  std::uint32_t datagram_bytes = 0;        // largest datagram this rank can send and take over UDP
  std::uint64_t receive_buffer_bytes = 0;  // see TransportLimits
  std::uint32_t window_bytes = 0;          // equal on all ranks; 0 = derive
  std::uint64_t seed = 0;                  // rank 0's is used
  // 4 or 16 bytes; if empty, join_group() takes the address by which this host reaches the
  // rendezvous.
  std::vector<std::byte> data_address;
  std::uint16_t data_port = 0;
  // True if the user named no address. The meeting may then replace data_address by an address at
  // which other ranks reached this host.
  bool may_move = false;
  TransportKind transport = TransportKind::udp;  // asked for; equal on all ranks
  bool multicast = false;                        // equal on all ranks
  int lanes = 1;                                 // equal on all ranks
  std::vector<TransportOffer> offers;
  Duration join_timeout = std::chrono::seconds(60);
  // Lets the caller cancel join_group(), which then fails with kCancelled within 200 ms. The
  // meeting fails for all ranks.
  std::stop_token stop;
};

// The transport that connects all ranks.
struct GroupTransport {
  struct Member {
    std::vector<std::byte> address;  // UDP: 4 or 16 bytes, network order; else that of its offer
    std::uint16_t port = 0;          // UDP only
    std::uint64_t receive_buffer_bytes = 0;
  };
  TransportKind kind = TransportKind::udp;  // udp, verbs or ucx
  std::uint32_t datagram_bytes = 0;         // the minimum over all ranks
  std::vector<Member> members;              // by rank
};

// Identities of all ranks, if they have a secret.
struct Identities {
  keys::Key nonce{};                    // random, new for each meeting
  std::vector<keys::Identity> members;  // by rank
  // Digest of the whole table, which goes into the keys of every pair. Not in the table itself.
  keys::Key meeting{};
};

// Result of a meeting: the table that all agreed on, with the same bits on every rank. Fields
// marked "not in the table" belong to this process alone.
struct Group {
  struct Multicast {
    std::vector<std::byte> address;  // 4 or 16 bytes, network order
    std::uint16_t port = 0;
  };
  std::uint32_t epoch = 0;  // random, never 0
  std::uint64_t seed = 0;
  GroupTransport datagrams;
  std::optional<Multicast> multicast;
  std::vector<std::uint64_t> attempts;   // by rank, random number of its join_group(); 0 for rank 0
  std::vector<std::uint64_t> processes;  // LocalConfiguration::process, by rank
  // Not in the table: keeps this process's rendezvous server open. While a group holds it, later
  // groups of this process meet at the same server. Null if this process has none.
  std::shared_ptr<void> place;

  // Longest round trip of any rank's TCP connection to rank 0. 0 if not known.
  Duration round_trip{0};

  // Set if ranks have a secret.
  std::optional<Identities> identities = std::nullopt;

  // Not in the table: this process's keys, made from the identities. Null without a secret.
  std::shared_ptr<const keys::JoinedKeys> keys = nullptr;

  // Memory places by rank, if datagrams go by UDP. Empty if no rank shares memory.
  std::vector<MemoryPlace> memories = {};

  // Site numbers, by rank. Empty if no rank names its site.
  std::vector<std::uint64_t> sites = {};
};

// Returns a text that says why datagrams take links outside the site. They do if they go by UDP,
// and if a rank is more than 2 ms from rank 0 or has a public address. Returns an empty text if
// they do not. The result is the same on every rank.
std::string why_far(const Group& group);
inline bool crosses_sites(const Group& group) {
  return !why_far(group).empty();
}

// Returns true if all ranks have the same UDP address and so share a host's processors. The result
// is the same on every rank.
bool shares_host(const Group& group);

}  // namespace leeway::rendezvous
