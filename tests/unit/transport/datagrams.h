// Datagrams and trains for the transport tests.
#pragma once

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "leeway/transport.h"
#include "transport/udp/udp_transport.h"
#include "wire/packet.h"

namespace leeway::transport {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(ByteSpan span) {
  return {span.begin(), span.end()};
}

// Makes bytes that depend on their place, so that a shifted or swapped copy shows.
inline Bytes pattern(std::size_t bytes, std::uint32_t start = 0) {
  Bytes out(bytes);
  std::uint32_t value = start * 2654435761u + 1;
  for (std::byte& at : out) {
    value = value * 1664525u + 1013904223u;
    at = static_cast<std::byte>(value >> 24);
  }
  return out;
}

// A train that owns its memory. `cuts`: byte offsets at which the memory is cut into slices.
struct OwnedTrain {
  OwnedTrain(Rank to, std::size_t segment_bytes, Bytes memory_in,
             std::vector<std::size_t> cuts = {})
      : memory(std::move(memory_in)) {
    std::size_t start = 0;
    cuts.push_back(memory.size());
    for (const std::size_t cut : cuts) {
      slices.push_back({memory.data() + start, cut - start});
      start = cut;
    }
    train = {to, segment_bytes, memory.size(), slices};
  }
  OwnedTrain(const OwnedTrain&) = delete;

  std::size_t datagrams() const {
    return (memory.size() + train.segment_bytes - 1) / train.segment_bytes;
  }
  ByteSpan datagram(std::size_t i) const {
    const std::size_t start = i * train.segment_bytes;
    return ByteSpan(memory).subspan(start, std::min(train.segment_bytes, memory.size() - start));
  }

  Bytes memory;
  std::vector<Slice> slices;
  Train train;
};

inline std::size_t send_one(DatagramTransport& transport, const Train& train) {
  return transport.send(std::span(&train, 1));
}

// Makes a data datagram from rank `source` to rank `destination`.
inline Bytes data_packet(std::uint32_t index, std::uint32_t flow_packets, Rank source = 1,
                         Rank destination = 0, std::size_t payload_bytes = 64,
                         std::uint16_t attempt = 0, bool payload_summed = true) {
  const Bytes payload = pattern(payload_bytes, index);
  Bytes packet(wire::kDataHeaderBytes);
  const wire::Prefix prefix{wire::PacketType::data, 9, source, destination, index + 1,
                            payload_summed};
  wire::DataHeader header;
  header.round = 3;
  header.attempt = attempt;
  header.index = {index};
  header.position = {index};
  header.flow_packets = flow_packets;
  wire::encode_data(prefix, header, crc32c(payload), packet);
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

inline Bytes probe_packet(std::uint32_t sequence, Rank source = 1, Rank destination = 0) {
  Bytes packet(limits::kDatagramBytesMax);
  packet.resize(
      wire::encode_bare({wire::PacketType::probe, 9, source, destination, sequence}, packet));
  return packet;
}

inline std::uint32_t index_of(ByteSpan packet) {
  wire::DataHeader header;
  ByteSpan payload;
  return wire::decode_data(packet, header, payload) == wire::Refusal::none ? header.index.value
                                                                           : UINT32_MAX;
}

// Receives until `count` datagrams have come, or none came for two seconds. Returns copies in
// order.
inline std::vector<Bytes> receive_all(DatagramTransport& transport, std::size_t count,
                                      std::size_t room = 32) {
  std::vector<Bytes> all;
  std::vector<Received> out(room);
  for (int idle = 0; all.size() < count && idle < 20;) {
    const std::size_t filled = transport.receive(out);
    for (std::size_t i = 0; i < filled; ++i) all.push_back(bytes_of(out[i].bytes));
    if (filled > 0) continue;
    transport.wait(std::chrono::milliseconds(100));
    ++idle;
  }
  return all;
}

// Makes UDP transports on loopback that know each other.
inline std::vector<std::unique_ptr<UdpTransport>> make_udp_group(int size,
                                                                 const UdpOptions& options = {}) {
  std::vector<std::unique_ptr<UdpTransport>> group;
  std::vector<UdpAddress> addresses;
  for (int i = 0; i < size; ++i) {
    group.push_back(UdpTransport::open(options).value());
    addresses.push_back(group.back()->local_address());
  }
  for (auto& transport : group) {
    if (!transport->set_peers(addresses).ok()) std::abort();
  }
  return group;
}

}  // namespace leeway::transport
