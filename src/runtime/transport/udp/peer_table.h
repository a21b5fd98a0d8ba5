// The addresses of all ranks. Sending looks up a rank's address; receiving looks up the rank of
// each datagram's source address.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/types.h"
#include "transport/udp/address.h"

namespace leeway::transport {

// The table is filled at once, before traffic, or peer by peer. Lookups allocate nothing. The table
// is at most half full, so lookups are short even for addresses that a stranger chose.
class PeerTable {
 public:
  // `by_rank[i]` is rank i's address. Returns an error if two ranks share an address, if families
  // differ, or if there are more than limits::kPeersMax ranks.
  Status assign(std::span<const UdpAddress> by_rank);

  // Adds a new peer, if `peer` is count(), or gives a known peer a further address from which it
  // sends. An address that another peer had becomes this peer's. Call it between send() and
  // receive() calls.
  Status meet(Rank peer, const UdpAddress& address);
  Rank count() const { return static_cast<Rank>(addresses_.size()); }

  // Replaces all addresses of a known peer by this one.
  void move(Rank peer, const UdpAddress& address);

  // Sets the address to which trains to kEveryRank go.
  void set_group(const UdpAddress& group) { group_ = group; }

  bool knows(Rank to) const {
    return to < addresses_.size() || (to == kEveryRank && group_.port() != 0);
  }
  const UdpAddress& address_of(Rank to) const { return to == kEveryRank ? group_ : addresses_[to]; }

  // Returns kNoRank if no peer has the address.
  Rank find(const sockaddr_storage& address) const;

 private:
  // An address without the fields that must not matter in a comparison (flow label, scope,
  // padding). IPv4 is v4-mapped. The address is kept in words, because with the bytes of a
  // NetworkAddress find() takes four times as long (64 peers).
  struct Key {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::uint32_t port = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Slot {
    Key key;
    Rank rank = kNoRank;
  };
  static Key key_of(const sockaddr* address);
  void grow();
  void insert(Rank peer, const UdpAddress& address);
  std::size_t home_of(const Key& key) const;
  // Returns the slot that holds the key, or the empty one where it belongs.
  std::size_t probe(const Key& key) const;

  std::vector<UdpAddress> addresses_;
  UdpAddress group_;
  std::vector<Slot> slots_;  // power of two
  std::size_t used_ = 0;     // slots in use
};

}  // namespace leeway::transport
