// Trains: several packets of one flow that cross the border to the kernel as one, as they do at a
// network card (segmentation and receive offload). The network between knows single packets only.
//
// At the descriptor of a device every packet or train has a virtio header in front.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ip_packet.h"

namespace leeway::lab {

// The kernel's virtio_net_hdr, whose own header is not C++.
struct DeviceHeader {
  std::uint8_t flags;
  std::uint8_t train;           // kind of train; 0: a single packet
  std::uint16_t headers_bytes;  // bytes of IP and transport headers; a hint
  std::uint16_t segment_bytes;  // bytes of payload in each packet but the last
  std::uint16_t checksum_begin;
  std::uint16_t checksum_at;  // offset from where it begins
};
inline constexpr std::size_t kDeviceHeaderBytes = sizeof(DeviceHeader);
static_assert(kDeviceHeaderBytes == 10);
inline constexpr std::size_t kDeviceBytesMax = kDeviceHeaderBytes + kPacketBytesMax;

// Cuts data read from a device into packets. A train is cut as its sender's card would cut it.
// Anything else, even an invalid train, is one packet.
class Cut {
 public:
  // Cuts `read`, which it changes, and which must outlive it.
  explicit Cut(std::span<std::byte> read);

  // Returns the next packet, valid until the next call, or nothing after the last one.
  std::span<const std::byte> next();

 private:
  void write_headers(std::span<std::byte> packet, bool last);

  static constexpr std::size_t kHeadersMax = 60 + 60;  // IPv4 and TCP, with options

  std::span<std::byte> packet_;
  std::optional<Transport> transport_;
  std::size_t segment_bytes_ = 0;  // bytes of payload in each packet but the last; 0: no train
  std::size_t done_ = 0;           // bytes of payload, or of the one packet
  std::uint32_t first_id_ = 0;
  std::array<std::byte, kHeadersMax> headers_{};
};

// Packets that come out of the network at the same time, for one device.
class Trains {
 public:
  Trains();

  // Adds the packet to the train of its flow if it continues that, or begins one. Returns false if
  // there are too many trains; flush first. `damaged`: the receiver's kernel shall look at the
  // checksum.
  bool add(ByteSpan packet, bool damaged);

  bool empty() const { return used_ == 0; }

  // Calls `write(ByteSpan)` with every train, in the order in which they began, and removes them.
  template <typename Write>
  void flush(Write write) {
    for (std::size_t i = 0; i < used_; ++i) write(finish((*trains_)[i]));
    used_ = 0;
  }

 private:
  // Most trains: flows to one device within 0.1 ms.
  static constexpr std::size_t kTrains = 16;

  struct Train {
    std::span<std::byte> packet() {
      return std::span(bytes).subspan(kDeviceHeaderBytes, packet_bytes);
    }
    bool joinable(const Transport& other) const { return transport && *transport == other; }

    std::array<std::byte, kDeviceBytesMax> bytes;  // the device's header, followed by the packet
    std::size_t packet_bytes;
    std::size_t packets;
    std::size_t segment_bytes;           // bytes of payload in each packet but the last
    std::optional<Transport> transport;  // set if the checksum is left to the receiver's kernel
    bool closed;                         // nothing can follow its last packet
  };

  static bool join(Train& train, ByteSpan packet);
  static ByteSpan finish(Train& train);

  std::unique_ptr<std::array<Train, kTrains>> trains_;
  std::size_t used_ = 0;
};

}  // namespace leeway::lab
