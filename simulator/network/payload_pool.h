// The bytes of the datagrams in flight: places taken and given back by number.
//
// Nothing is allocated in a steady state: memory grows only when more datagrams are in flight than
// ever before. Places come in sizes that double from 64 bytes on, so that a header without its
// payload takes a cache line. A copy that a link makes shares its original's bytes, which are
// therefore never written to after put().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "leeway/types.h"
#include "network/packet.h"

namespace leeway::sim {

class PayloadPool {
 public:
  // Datagrams of up to `bytes_max` bytes.
  explicit PayloadPool(std::size_t bytes_max);

  // Keeps a copy, which has one holder. `datagram` has at most bytes_max bytes.
  std::uint32_t put(ByteSpan datagram);
  // Valid while the payload is held. kNoPayload is an empty payload.
  ByteSpan get(std::uint32_t payload) const;
  // Call it when the payload will be read soon.
  void prefetch(std::uint32_t payload) const;

  // Add and remove a holder; the last one gives the place back. kNoPayload is allowed and changes
  // nothing.
  void hold(std::uint32_t payload);
  void release(std::uint32_t payload);

  std::size_t held() const { return held_; }  // places in use

 private:
  struct Place {
    std::uint32_t bytes = 0;
    std::uint32_t holders = 0;
    std::uint32_t next_free = 0;
  };
  // All places of one size. The lowest bits of a payload's number are the size, the others its
  // place here.
  struct Shelf {
    std::size_t stride = 0;
    std::vector<std::unique_ptr<std::byte[]>> blocks;
    std::vector<Place> places;
    std::uint32_t free = kNoPayload;

    void grow();
    std::byte* memory_of(std::uint32_t place) const {
      return blocks[place / kBlockPlaces].get() + place % kBlockPlaces * stride;
    }
  };
  static constexpr std::uint32_t kBlockPlaces = 64;
  static constexpr std::size_t kBytesMin = 64;
  static constexpr std::uint32_t kShelfBits = 4;  // 64 bytes to 2 MiB

  static std::uint32_t shelf_for(std::size_t bytes);
  static std::uint32_t shelf_of(std::uint32_t payload) {
    return payload & ((1u << kShelfBits) - 1);
  }
  static std::uint32_t place_of(std::uint32_t payload) { return payload >> kShelfBits; }
  Place& place(std::uint32_t payload) {
    return shelves_[shelf_of(payload)].places[place_of(payload)];
  }
  bool is_held(std::uint32_t payload) const;

  std::size_t bytes_max_;
  std::vector<Shelf> shelves_;
  std::size_t held_ = 0;
};

}  // namespace leeway::sim
