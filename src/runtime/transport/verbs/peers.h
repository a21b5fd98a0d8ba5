// Finds the rank that sent a datagram by the addresses in the datagram's headers.
#pragma once

#include <infiniband/verbs.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/types.h"
#include "transport/verbs/address.h"

namespace leeway::transport {

// Room that the device leaves in front of every datagram for the network's header.
inline constexpr std::size_t kNetworkHeaderBytes = 40;

// The table is filled once, before traffic. A lookup allocates nothing and takes ten comparisons
// for 1,024 peers, whatever addresses strangers choose.
class VerbsPeers {
 public:
  // `by_rank[i]` is rank i's address. Returns an error if two ranks have the same address, if link
  // layers or IPv4 and IPv6 are mixed, if `own` is missing, or if there are more than
  // limits::kPeersMax.
  Status assign(std::span<const VerbsAddress> by_rank, const VerbsAddress& own);

  Rank self() const { return self_; }

  // Returns the rank that sent the completion's datagram, or kNoRank for a stranger. The rank may
  // be self(), because multicast comes back. `header` is the kNetworkHeaderBytes in front of the
  // datagram.
  Rank find(const ibv_wc& completion, const std::byte* header) const;

 private:
  // Identifies a sender by its queue pair and its GID, or its LID if there is no GID.
  struct Key {
    Gid gid{};
    std::uint32_t lid = 0;
    std::uint32_t queue_pair = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the generated comparison with 0
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    Rank rank = kNoRank;
  };
  Key key_of(const ibv_wc& completion, const std::byte* header) const;

  std::vector<Entry> entries_;  // sorted by key
  bool ipv4_ = false;           // all peers' addresses are IPv4: the network's header is IPv4's
  Rank self_ = kNoRank;
};

}  // namespace leeway::transport
