// Bounded memory for datagrams that arrive before this rank has opened their operation.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "leeway/types.h"

namespace leeway::protocol {

// A fixed pool of datagram-sized slots shared fairly: no peer holds more than its share. Allocates
// at construction only.
class EarlyBuffer {
 public:
  EarlyBuffer(int peers, std::uint32_t slots_per_peer, std::size_t datagram_bytes);

  // Keeps a copy under `key`; false when the peer's share is used up or the datagram is too long.
  bool put(Rank from, std::uint64_t key, ByteSpan datagram);

  // Hands every datagram under `key` to `use`, in no particular order, and frees its slot.
  void take(std::uint64_t key, const std::function<void(Rank, ByteSpan)>& use);

  std::uint32_t held() const { return held_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t bytes = 0;  // 0: free
  };
  std::uint32_t slots_per_peer_;
  std::size_t datagram_bytes_;
  std::vector<Slot> slots_;  // slots_per_peer_ consecutive ones for each peer
  std::vector<std::byte> memory_;
  std::uint32_t held_ = 0;
};

}  // namespace leeway::protocol
