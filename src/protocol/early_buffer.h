// Bounded memory for datagrams that arrive before this rank has opened their operation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

  // Hands every datagram under `key`, of all peers or of one, to `use`, in no particular order, and
  // frees its slot.
  using Use = std::function<void(Rank from, ByteSpan datagram)>;
  void take(std::uint64_t key, const Use& use);
  void take_from(Rank peer, std::uint64_t key, const Use& use);

  std::uint32_t held() const { return held_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t bytes = 0;  // 0: free
  };
  void take_slots(std::size_t first, std::size_t last, std::uint64_t key, const Use& use);

  std::uint32_t slots_per_peer_;
  std::size_t datagram_bytes_;
  std::vector<Slot> slots_;  // slots_per_peer_ consecutive ones for each peer
  std::unique_ptr<std::byte[]>
      memory_;  // uninitialised: pages that are never used are never touched
  std::uint32_t held_ = 0;
};

}  // namespace leeway::protocol
