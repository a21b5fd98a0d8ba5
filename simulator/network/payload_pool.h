// The bytes of the datagrams in flight, in numbered places.
//
// Memory grows only when more datagrams are in flight than ever before. The sizes of places double
// from 64 bytes on, so a header without payload takes one cache line. When a link copies a packet,
// packet and copy share one place, so the bytes in a place must not change after put().
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
  // The pool is for datagrams of at most `bytes_max` bytes.
  explicit PayloadPool(std::size_t bytes_max);

  // Copies the datagram, of at most bytes_max bytes, into a place with one holder, the caller.
  // Returns the place's number.
  std::uint32_t put(ByteSpan datagram);
  // Returns the datagram, valid while somebody holds it. kNoPayload gives an empty one.
  ByteSpan get(std::uint32_t payload) const;
  // Call it when the payload will be read soon.
  void prefetch(std::uint32_t payload) const;

  // Add and remove a holder. Removing the last one frees the place. kNoPayload is ignored.
  void hold(std::uint32_t payload);
  void release(std::uint32_t payload);

  std::size_t held() const { return held_; }  // places in use

 private:
  struct Place {
    std::uint32_t bytes = 0;
    std::uint32_t holders = 0;
    std::uint32_t next_free = 0;
  };
  // All places of one size. A payload's number has the index of its shelf in the lowest bits, and
  // its place on the shelf above.
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
