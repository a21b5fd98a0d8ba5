#include "ip_packet.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kHeaderBytesMin = 20;

void put16(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}

void put32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  put16(bytes, at, value >> 16);
  put16(bytes, at + 2, value);
}

// The internet checksum (RFC 1071) of an even number of bytes.
std::uint32_t checksum(ByteSpan bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8 |
           std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace

Ipv4View::Ipv4View(ByteSpan packet) : packet_(packet) {
  if (packet.size() < kHeaderBytesMin || byte(0) >> 4 != 4) return;
  const std::size_t header = std::size_t{byte(0) & 15} * 4;
  const std::size_t total = byte(2) << 8 | byte(3);
  if (header < kHeaderBytesMin || header > total || total > packet.size()) return;
  header_bytes_ = header;
}

void mark_congestion(std::span<std::byte> packet) {
  const std::size_t header = Ipv4View(packet).header_bytes();
  LEEWAY_ASSERT(header > 0);
  packet[1] |= std::byte{3};
  put16(packet, 10, 0);
  put16(packet, 10, checksum(packet.first(header)));
}

std::size_t write_too_big(ByteSpan packet, std::uint32_t mtu, std::span<std::byte> out) {
  const Ipv4View view(packet);
  LEEWAY_ASSERT(view.valid() && out.size() >= kIcmpBytesMax);
  constexpr std::size_t kIcmp = 20, kQuote = 28, kQuotedPayload = 8;
  // An odd byte of payload is left out: the checksum takes pairs.
  const std::size_t quoted = std::min(packet.size(), view.header_bytes() + kQuotedPayload) & ~1u;
  const std::size_t total = kQuote + quoted;
  std::ranges::fill(out, std::byte{0});
  out[0] = std::byte{0x45};
  put16(out, 2, static_cast<std::uint32_t>(total));
  out[8] = std::byte{64};  // time to live
  out[9] = std::byte{1};   // ICMP
  put32(out, 12, view.destination());
  put32(out, 16, view.source());
  put16(out, 10, checksum(out.first(kIcmp)));
  out[kIcmp] = std::byte{3};      // destination unreachable,
  out[kIcmp + 1] = std::byte{4};  // fragmentation needed
  put16(out, kIcmp + 6, mtu);
  std::ranges::copy(packet.first(quoted), out.begin() + kQuote);
  put16(out, kIcmp + 2, checksum(out.subspan(kIcmp, total - kIcmp)));
  return total;
}

}  // namespace leeway::lab
