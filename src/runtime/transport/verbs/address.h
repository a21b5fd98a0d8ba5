// Where a queue pair is reached, as ranks tell each other.
#pragma once

#include <array>
#include <asio/ip/address.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

// A port's address, 128 bits, in the order of the wire. On Ethernet (RoCE v2) it is the IPv6
// address, or the IPv4 address v4-mapped; on InfiniBand a subnet prefix and a port number.
using Gid = std::array<std::uint8_t, 16>;

Gid gid_of(const asio::ip::address& address);
// The IPv4 or IPv6 address that the GID is, or would be.
std::string text_of(const Gid& gid);

enum class LinkLayer : std::uint8_t { infiniband = 1, ethernet = 2 };

struct VerbsAddress {
  LinkLayer link = LinkLayer::ethernet;
  std::uint16_t lid = 0;         // address within an InfiniBand subnet; 0 on Ethernet
  std::uint32_t queue_pair = 0;  // 24 bits
  std::uint32_t queue_key = 0;   // key that a datagram must carry to be let in
  Gid gid{};
  friend auto operator<=>(const VerbsAddress&, const VerbsAddress&) = default;
};

// version 1, link layer, LID, queue pair number, queue key, GID; big-endian.
inline constexpr std::size_t kVerbsAddressBytes = 28;
inline constexpr std::uint32_t kQueuePairMin = 2;  // 0 and 1 are the fabric manager's
inline constexpr std::uint32_t kMulticastQueuePair = 0xFFFFFF;

std::vector<std::byte> encode(const VerbsAddress& address);

// kMismatch for another version, kInvalidArgument for anything that cannot be a queue pair's
// address. The bytes are a peer's and not trusted.
Result<VerbsAddress> decode_verbs_address(ByteSpan bytes);

}  // namespace leeway::transport
