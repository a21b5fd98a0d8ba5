// The bytes of the datagrams that are under way: equal places, taken and given back by number.
//
// Nothing is allocated in a steady state: memory grows only when more datagrams are under way than
// ever before. A copy that a link makes shares its original's bytes, which are therefore never
// written to after put().
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

  // Keeps a copy; held once. The longest allowed is bytes_max.
  std::uint32_t put(ByteSpan datagram);
  // Valid while it is held. kNoPayload is an empty one.
  ByteSpan get(std::uint32_t payload) const;

  // One holder more, one holder less; the last gives the place back. kNoPayload is allowed and
  // means nothing.
  void hold(std::uint32_t payload);
  void release(std::uint32_t payload);

  std::size_t held() const { return held_; }  // places in use

 private:
  struct Place {
    std::uint32_t bytes = 0;
    std::uint32_t holders = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t kBlockPlaces = 64;

  void grow();
  std::byte* memory_of(std::uint32_t payload) const {
    return blocks_[payload / kBlockPlaces].get() + payload % kBlockPlaces * stride_;
  }

  std::size_t bytes_max_;
  std::size_t stride_;  // of the places, a multiple of every element's alignment
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::vector<Place> places_;
  std::uint32_t free_ = kNoPayload;
  std::size_t held_ = 0;
};

}  // namespace leeway::sim
