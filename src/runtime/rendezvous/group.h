// What a process brings to a meeting, and the group that comes of it.
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

// Returns true if datagrams of this kind go by UDP, at least between hosts.
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

// Identifies a rank to others of its host, with whom it may share memory.
struct MemoryPlace {
  std::array<std::byte, 16> boot{};   // the kernel's boot id
  std::uint32_t user = 0;             // effective user id
  std::array<std::byte, 16> token{};  // random, of this rank's endpoint; zero: it shares none

  bool shares() const { return token != std::array<std::byte, 16>{}; }
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

// Settings and offers that this process brings to the meeting.
struct LocalConfiguration {
  Rank rank = 0;
  int size = 1;
  // "host:port" of rank 0, "[v6]:port" for IPv6; unused when size is 1. With a store, see
  // Options::store.
  std::string rendezvous;
  std::shared_ptr<Rendezvous> store;  // TCP if null
  std::uint64_t restart_count = 0;    // equal on all ranks, as is the name; else they do not meet
  std::string name = "world";
  // Number of this rank's endpoint: random, equal in all groups that share it.
  std::uint64_t process = 0;
  // Identity of the same endpoint. Null if this rank has no secret; then no rank may have one.
  std::shared_ptr<const keys::OwnIdentity> identity;
  MemoryPlace memory;                      // the same endpoint's
  std::uint64_t site = 0;                  // number of this rank's site, 0 if none is named
  bool insecure = false;                   // public addresses without a secret
  std::uint32_t datagram_bytes = 0;        // largest datagram this rank can send and take over UDP
  std::uint64_t receive_buffer_bytes = 0;  // see TransportLimits
  std::uint32_t window_bytes = 0;          // equal on all ranks; 0 = derive
  std::uint64_t seed = 0;                  // rank 0's is used
  // 4 or 16 bytes; empty = the address by which this host reaches the rendezvous
  std::vector<std::byte> data_address;
  std::uint16_t data_port = 0;
  // The user named no address. So the meeting may replace data_address by one at which others were
  // seen to reach this rank.
  bool may_move = false;
  TransportKind transport = TransportKind::udp;  // asked for; equal on all ranks
  bool multicast = false;                        // equal on all ranks
  int lanes = 1;                                 // equal on all ranks
  std::vector<TransportOffer> offers;
  Duration join_timeout = std::chrono::seconds(60);
  // Lets the caller cancel join_group(). The call then fails with kCancelled within 200 ms, and the
  // meeting fails with it.
  std::stop_token stop;
};

// One transport between all ranks.
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

// Identities that ranks with a secret tell each other.
struct Identities {
  keys::Key nonce{};                    // random, new for each meeting
  std::vector<keys::Identity> members;  // by rank
  // Not in the table: digest of all its bytes, which goes into the keys of every pair.
  keys::Key meeting{};
};

// Result of a meeting: the table that all agreed on, with the same bits on every rank. A few
// members are not in the table.
struct Group {
  struct Multicast {
    std::vector<std::byte> address;  // 4 or 16 bytes, network order
    std::uint16_t port = 0;
  };
  std::uint32_t epoch = 0;  // random nonce of this incarnation, never 0
  std::uint64_t seed = 0;
  GroupTransport datagrams;
  std::optional<Multicast> multicast;
  std::vector<std::uint64_t> attempts;   // by rank, random number of its join_group(); 0 for rank 0
  std::vector<std::uint64_t> processes;  // LocalConfiguration::process, by rank
  // Not in the table: keeps this process's server open. While one group of a process holds it,
  // later groups meet at the same address without opening it anew. Null if this process owns no
  // server.
  std::shared_ptr<void> place;

  // Longest round trip of any rank's TCP connection to rank 0. 0 if not known.
  Duration round_trip{0};

  // Set if ranks have a secret.
  std::optional<Identities> identities = std::nullopt;

  // Not in the table: this process's keys, made from the identities. Null without a secret.
  std::shared_ptr<const keys::JoinedKeys> keys = nullptr;

  // Memory places over UDP, by rank. Empty if no rank shares memory.
  std::vector<MemoryPlace> memories = {};

  // Site numbers, by rank. Empty if no rank names its site.
  std::vector<std::uint64_t> sites = {};
};

// why_far() says, for people, why the group's datagrams leave the site, over links that others use
// too: they go by UDP, and a rank is more than 2 ms from rank 0 or has a public address. It is
// empty, and crosses_sites() false, if they do not. Both are the same on every rank.
std::string why_far(const Group& group);
inline bool crosses_sites(const Group& group) {
  return !why_far(group).empty();
}

// Returns true if all ranks have told one UDP address, so that they share a host's processors. The
// same on every rank.
bool shares_host(const Group& group);

}  // namespace leeway::rendezvous
