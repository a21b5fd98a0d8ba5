// Trains: several packets of one flow that the kernel hands over as one, as to a network card
// (segmentation and receive offload). The emulated network only knows single packets.
//
// Data of a device's descriptor begins with a virtio header, in front of every packet or train.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ip_packet.h"

namespace leeway::lab {

// The kernel's virtio_net_hdr. The kernel's own header is not valid C++.
struct DeviceHeader {
  std::uint8_t flags;
  std::uint8_t train;           // kind of train; 0: a single packet
  std::uint16_t headers_bytes;  // bytes of IP and transport headers; a hint
  std::uint16_t segment_bytes;  // bytes of payload in each packet but the last
  std::uint16_t checksum_begin;
  std::uint16_t checksum_at;  // offset from checksum_begin
};
inline constexpr std::size_t kDeviceHeaderBytes = sizeof(DeviceHeader);
static_assert(kDeviceHeaderBytes == 10);
inline constexpr std::size_t kDeviceBytesMax = kDeviceHeaderBytes + kPacketBytesMax;

// Cuts data read from a device into packets, as a sending network card would cut a train. Anything
// else, even an invalid train, is one packet.
class Cut {
 public:
  // `read` must outlive this object, which overwrites it.
  explicit Cut(std::span<std::byte> read);

  // Returns the next packet, or nothing after the last one. It is valid until the next call.
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

// Packets that are due for one device at about the same time, joined into trains.
class Trains {
 public:
  Trains();

  // Adds the packet to a train that it continues, or begins a train. Returns false if there are too
  // many trains; then call flush(). `damaged`: the receiving kernel must check the packet's
  // checksum.
  bool add(ByteSpan packet, bool damaged);

  bool empty() const { return used_ == 0; }

  // Calls `write(ByteSpan)` for every train, oldest first, and removes all.
  template <typename Write>
  void flush(Write write) {
    for (std::size_t i = 0; i < used_; ++i) write(finish((*trains_)[i]));
    used_ = 0;
  }

 private:
  // Limit on the trains at a time. One train is needed for each flow to a device within 0.1 ms.
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
    bool closed;                         // no packet may be added any more
  };

  static bool join(Train& train, ByteSpan packet);
  static ByteSpan finish(Train& train);

  std::unique_ptr<std::array<Train, kTrains>> trains_;
  std::size_t used_ = 0;
};

}  // namespace leeway::lab
