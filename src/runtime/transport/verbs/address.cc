#include "transport/verbs/address.h"

#include <cstring>

namespace leeway::transport {
namespace {

constexpr std::uint8_t kVersion = 1;
// Local identifiers from here on are multicast groups.
constexpr std::uint16_t kMulticastLid = 0xC000;

template <typename Unsigned>
std::byte* put(std::byte* to, Unsigned value) {
  for (int shift = 8 * (sizeof(value) - 1); shift >= 0; shift -= 8) {
    *to++ = static_cast<std::byte>(value >> shift);
  }
  return to;
}

template <typename Unsigned>
const std::byte* get(const std::byte* from, Unsigned& value) {
  value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    value = static_cast<Unsigned>(value << 8 | std::to_integer<Unsigned>(*from++));
  }
  return from;
}

bool plausible(const VerbsAddress& address) {
  const bool infiniband = address.link == LinkLayer::infiniband;
  if (!infiniband && address.link != LinkLayer::ethernet) return false;
  if (infiniband ? address.lid == 0 || address.lid >= kMulticastLid : address.lid != 0)
    return false;
  if (address.queue_pair < kQueuePairMin || address.queue_pair >= kMulticastQueuePair) return false;
  return address.gid != Gid{} && address.gid[0] != 0xFF;
}

}  // namespace

Gid gid_of(const asio::ip::address& address) {
  return address.is_v4()
             ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes()
             : address.to_v6().to_bytes();
}

std::vector<std::byte> encode(const VerbsAddress& address) {
  std::vector<std::byte> bytes(kVerbsAddressBytes);
  std::byte* to = put(bytes.data(), kVersion);
  to = put(to, static_cast<std::uint8_t>(address.link));
  to = put(to, address.lid);
  to = put(to, address.queue_pair);
  to = put(to, address.queue_key);
  std::memcpy(to, address.gid.data(), address.gid.size());
  return bytes;
}

Result<VerbsAddress> decode_verbs_address(ByteSpan bytes) {
  if (!bytes.empty() && std::to_integer<std::uint8_t>(bytes[0]) != kVersion) {
    return Status::error(StatusCode::kMismatch, "verbs address of version %u; this is version %u",
                         std::to_integer<unsigned>(bytes[0]), unsigned{kVersion});
  }
  if (bytes.size() != kVerbsAddressBytes) {
    return Status::error(StatusCode::kInvalidArgument, "verbs address of %zu bytes: %zu expected",
                         bytes.size(), kVerbsAddressBytes);
  }
  VerbsAddress address;
  std::uint8_t link = 0;
  const std::byte* from = get(bytes.data() + 1, link);
  from = get(from, address.lid);
  from = get(from, address.queue_pair);
  from = get(from, address.queue_key);
  std::memcpy(address.gid.data(), from, address.gid.size());
  address.link = static_cast<LinkLayer>(link);
  if (plausible(address)) return address;
  return Status::error(
      StatusCode::kInvalidArgument,
      "no queue pair can have the address: link layer %u, LID %u, number %u, GID %s",
      unsigned{link}, unsigned{address.lid}, address.queue_pair, ip_text(address.gid).c_str());
}

}  // namespace leeway::transport
