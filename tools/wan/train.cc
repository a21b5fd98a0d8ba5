#include "train.h"

#include <algorithm>
#include <cstring>

#include "base/contracts.h"

namespace leeway::lab {
namespace {

// Constants of linux/virtio_net.h: NEEDS_CSUM, GSO_UDP_L4 (since Linux 6.2), GSO_TCPV4.
constexpr std::uint8_t kChecksumIsPartial = 1;
constexpr std::uint8_t kUdpTrain = 5;
constexpr std::uint8_t kTcpTrain = 1;

// Older kernels permit at most this many packets in a UDP train (UDP_MAX_SEGMENTS).
constexpr std::size_t kTrainPacketsMax = 64;

constexpr std::uint32_t kFin = 1, kPush = 8, kAck = 16, kCongestionWindowReduced = 128;

constexpr std::size_t kSequence = 4, kAcknowledged = 8, kFlags = 13, kWindow = 14, kUrgent = 18;

std::uint32_t tcp_flags(ByteSpan packet, const Transport& transport) {
  return std::to_integer<std::uint32_t>(packet[transport.begin + kFlags]);
}

void set_tcp_flags(std::span<std::byte> packet, const Transport& transport, std::uint32_t flags) {
  packet[transport.begin + kFlags] = static_cast<std::byte>(flags);
}

// Sets lengths and checksums of a packet whose size has changed. The UDP or TCP checksum stays
// partial (not completed), because the receiving kernel does not check packets that were never on a
// wire.
void fit_headers(std::span<std::byte> packet, const Transport& transport) {
  set_total_bytes(packet, packet.size());
  if (!transport.tcp) {
    put16(packet, transport.begin + 4, static_cast<std::uint32_t>(packet.size() - transport.begin));
  }
  put16(packet, transport.checksum(), pseudo_header_sum(packet, transport));
}

bool same_bytes(ByteSpan a, ByteSpan b, std::size_t from, std::size_t to) {
  return std::memcmp(a.data() + from, b.data() + from, to - from) == 0;
}

bool same_flow(ByteSpan a, ByteSpan b, const Transport& transport) {
  constexpr std::size_t kAddresses = 12, kAddressesEnd = 20, kPortBytes = 4;
  return same_bytes(a, b, kAddresses, kAddressesEnd) &&
         same_bytes(a, b, transport.begin, transport.begin + kPortBytes);
}

// Returns true if the IP headers agree but for total length, identification and checksum.
bool same_ip_header(ByteSpan a, ByteSpan b, const Transport& transport) {
  return same_bytes(a, b, 0, 2) && same_bytes(a, b, 6, 10) && same_bytes(a, b, 12, transport.begin);
}

// Returns true if `next` continues the TCP stream of `train`, and carries nothing new but data.
bool tcp_continues(ByteSpan train, ByteSpan next, const Transport& transport) {
  const std::size_t tcp = transport.begin;
  const auto had = static_cast<std::uint32_t>(train.size() - transport.payload);
  return get32(next, tcp + kSequence) == get32(train, tcp + kSequence) + had &&
         tcp_flags(train, transport) == kAck && (tcp_flags(next, transport) & ~kPush) == kAck &&
         same_bytes(train, next, tcp + kAcknowledged, tcp + kFlags) &&
         same_bytes(train, next, tcp + kWindow, tcp + kWindow + 2) &&
         same_bytes(train, next, tcp + kUrgent, transport.payload);
}

}  // namespace

// ---- one train to many packets ------------------------------------------------------------------

Cut::Cut(std::span<std::byte> read) {
  DeviceHeader header;
  if (read.size() <= sizeof(header)) return;
  std::memcpy(&header, read.data(), sizeof(header));
  packet_ = read.subspan(sizeof(header));
  transport_ = find_transport(packet_);
  const bool train = transport_ && header.train == (transport_->tcp ? kTcpTrain : kUdpTrain) &&
                     packet_.size() > transport_->payload;
  if (!train) return;
  segment_bytes_ = header.segment_bytes;
  first_id_ = get16(packet_, 4);
  std::ranges::copy(packet_.first(transport_->payload), headers_.begin());
}

std::span<const std::byte> Cut::next() {
  const std::size_t header = segment_bytes_ == 0 ? 0 : transport_->payload;
  const std::size_t left = packet_.size() - header - done_;
  if (packet_.empty() || left == 0) return {};
  const std::size_t payload = segment_bytes_ == 0 ? left : std::min(left, segment_bytes_);
  // Each packet's headers are written over the end of the previous packet's payload, which is no
  // longer needed.
  const std::span<std::byte> packet = packet_.subspan(done_, header + payload);
  if (header > 0) write_headers(packet, payload == left);
  done_ += payload;
  return packet;
}

void Cut::write_headers(std::span<std::byte> packet, bool last) {
  std::ranges::copy(ByteSpan(headers_).first(transport_->payload), packet.begin());
  put16(packet, 4, first_id_ + static_cast<std::uint32_t>(done_ / segment_bytes_));
  if (transport_->tcp) {
    const std::size_t sequence = transport_->begin + kSequence;
    put32(packet, sequence, get32(packet, sequence) + static_cast<std::uint32_t>(done_));
    std::uint32_t flags = tcp_flags(packet, *transport_);
    if (!last) flags &= ~(kFin | kPush);
    if (done_ > 0) flags &= ~kCongestionWindowReduced;
    set_tcp_flags(packet, *transport_, flags);
  }
  fit_headers(packet, *transport_);
}

// ---- many packets to one train ------------------------------------------------------------------

Trains::Trains() : trains_(std::make_unique<std::array<Train, kTrains>>()) {}

bool Trains::add(ByteSpan packet, bool damaged) {
  LEEWAY_ASSERT(packet.size() <= kPacketBytesMax);
  const auto transport = damaged ? std::nullopt : find_transport(packet);
  // A packet may join a train only if its checksum is partial, that is, if the sender left it to
  // the network card to complete.
  const bool partial =
      transport && get16(packet, transport->checksum()) == pseudo_header_sum(packet, *transport);
  for (std::size_t i = used_; partial && i-- > 0;) {
    Train& train = (*trains_)[i];
    if (!train.joinable(*transport) || !same_flow(train.packet(), packet, *transport)) continue;
    if (join(train, packet)) return true;
    break;  // so that a later packet does not overtake this one
  }
  if (used_ == kTrains) return false;
  Train& train = (*trains_)[used_++];
  train.packet_bytes = packet.size();
  train.packets = 1;
  train.transport = partial ? transport : std::nullopt;
  train.segment_bytes = partial ? packet.size() - transport->payload : 0;
  train.closed = train.segment_bytes == 0;
  std::ranges::copy(packet, train.bytes.begin() + kDeviceHeaderBytes);
  return true;
}

bool Trains::join(Train& train, ByteSpan packet) {
  const Transport& transport = *train.transport;
  const std::size_t payload = packet.size() - transport.payload;
  const bool fits = !train.closed && payload > 0 && payload <= train.segment_bytes &&
                    train.packets < kTrainPacketsMax &&
                    train.packet_bytes + payload <= kPacketBytesMax;
  if (!fits || !same_ip_header(train.packet(), packet, transport)) return false;
  if (transport.tcp && !tcp_continues(train.packet(), packet, transport)) return false;
  std::ranges::copy(packet.subspan(transport.payload),
                    train.bytes.begin() + kDeviceHeaderBytes + train.packet_bytes);
  train.packet_bytes += payload;
  ++train.packets;
  train.closed = payload < train.segment_bytes;
  if (transport.tcp && tcp_flags(packet, transport) != kAck) {
    set_tcp_flags(train.packet(), transport, tcp_flags(packet, transport));
    train.closed = true;
  }
  return true;
}

ByteSpan Trains::finish(Train& train) {
  DeviceHeader header{};
  if (train.transport) {
    const Transport& transport = *train.transport;
    header.flags = kChecksumIsPartial;
    header.checksum_begin = static_cast<std::uint16_t>(transport.begin);
    header.checksum_at = static_cast<std::uint16_t>(transport.checksum() - transport.begin);
    if (train.packets > 1) {
      header.train = transport.tcp ? kTcpTrain : kUdpTrain;
      header.segment_bytes = static_cast<std::uint16_t>(train.segment_bytes);
      header.headers_bytes = static_cast<std::uint16_t>(transport.payload);
      fit_headers(train.packet(), transport);
    }
  }
  std::memcpy(train.bytes.data(), &header, sizeof(header));
  return ByteSpan(train.bytes).first(kDeviceHeaderBytes + train.packet_bytes);
}

}  // namespace leeway::lab
