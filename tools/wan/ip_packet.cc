#include "ip_packet.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kHeaderBytesMin = 20;

constexpr std::uint32_t kTcp = 6, kUdp = 17;
constexpr std::size_t kTcpHeaderBytesMin = 20, kUdpHeaderBytes = 8;

std::uint32_t folded(std::uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// Returns the internet checksum (RFC 1071) of an even number of bytes.
std::uint32_t checksum(ByteSpan bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += get16(bytes, i);
  return ~folded(sum) & 0xffff;
}

void set_header_checksum(std::span<std::byte> packet) {
  put16(packet, 10, 0);
  put16(packet, 10, checksum(packet.first(Ipv4View(packet).header_bytes())));
}

}  // namespace

Ipv4View::Ipv4View(ByteSpan packet) : packet_(packet) {
  if (packet.size() < kHeaderBytesMin || byte(0) >> 4 != 4) return;
  const std::size_t header = std::size_t{byte(0) & 15} * 4;
  const std::size_t total = total_bytes();
  if (header < kHeaderBytesMin || header > total || total > packet.size()) return;
  header_bytes_ = header;
}

std::optional<Transport> find_transport(ByteSpan packet) {
  const Ipv4View view(packet);
  if (!view.valid() || view.fragment() || view.total_bytes() != packet.size()) return {};
  const std::size_t begin = view.header_bytes();
  const std::size_t bytes = packet.size() - begin;
  if (view.protocol() == kUdp) {
    if (bytes < kUdpHeaderBytes || get16(packet, begin + 4) != bytes) return {};
    return Transport{.tcp = false, .begin = begin, .payload = begin + kUdpHeaderBytes};
  }
  if (view.protocol() != kTcp || bytes < kTcpHeaderBytesMin) return {};
  const std::size_t header = std::size_t{get16(packet, begin + 12) >> 12} * 4;
  if (header < kTcpHeaderBytesMin || header > bytes) return {};
  return Transport{.tcp = true, .begin = begin, .payload = begin + header};
}

std::uint32_t pseudo_header_sum(ByteSpan packet, const Transport& transport) {
  constexpr std::size_t kAddresses = 12;
  std::uint32_t sum = transport.tcp ? kTcp : kUdp;
  sum += static_cast<std::uint32_t>(packet.size() - transport.begin);
  for (std::size_t i = kAddresses; i < kHeaderBytesMin; i += 2) sum += get16(packet, i);
  return folded(sum);
}

void set_total_bytes(std::span<std::byte> packet, std::size_t total) {
  put16(packet, 2, static_cast<std::uint32_t>(total));
  set_header_checksum(packet);
}

void mark_congestion(std::span<std::byte> packet) {
  LEEWAY_ASSERT(Ipv4View(packet).valid());
  packet[1] |= std::byte{3};
  set_header_checksum(packet);
}

std::size_t write_too_big(ByteSpan packet, std::uint32_t mtu, std::span<std::byte> out) {
  const Ipv4View view(packet);
  LEEWAY_ASSERT(view.valid() && out.size() >= kIcmpBytesMax);
  constexpr std::size_t kIcmp = 20, kQuote = 28, kQuotedPayload = 8;
  // The quoted length is even, because the checksum takes pairs of bytes.
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
