// The address of a queue pair, as ranks tell it to each other.
#pragma once

#include <array>
#include <asio/ip/address.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/network_address.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

// A port's address, 128 bits, in the order of the wire. On Ethernet (RoCE v2) it is the IPv6
// address, or the IPv4 address v4-mapped; on InfiniBand a subnet prefix and a port number. In texts
// it has the form of an IP address (ip_text()).
using Gid = std::array<std::uint8_t, 16>;

Gid gid_of(const asio::ip::address& address);

enum class LinkLayer : std::uint8_t { infiniband = 1, ethernet = 2 };

struct VerbsAddress {
  LinkLayer link = LinkLayer::ethernet;
  std::uint16_t lid = 0;         // address within an InfiniBand subnet; 0 on Ethernet
  std::uint32_t queue_pair = 0;  // 24 bits
  std::uint32_t queue_key = 0;   // key that a datagram must carry to be accepted
  Gid gid{};
  friend auto operator<=>(const VerbsAddress&, const VerbsAddress&) = default;
};

// Size of an encoded address in bytes. The fields are version 1, link layer, LID, queue pair
// number, queue key, and GID, all big-endian.
inline constexpr std::size_t kVerbsAddressBytes = 28;
inline constexpr std::uint32_t kQueuePairMin = 2;  // 0 and 1 belong to the fabric manager
inline constexpr std::uint32_t kMulticastQueuePair = 0xFFFFFF;

std::vector<std::byte> encode(const VerbsAddress& address);

// Returns kMismatch for another version, and kInvalidArgument if this cannot be a queue pair's
// address. The bytes are a peer's and not trusted.
Result<VerbsAddress> decode_verbs_address(ByteSpan bytes);

}  // namespace leeway::transport
