// Bounded memory for datagrams that arrive before this rank has opened their operation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "leeway/types.h"

namespace leeway::protocol {

// Operation that a datagram belongs to.
struct EarlyKey {
  std::uint32_t number = 0;
  bool message = false;
  std::uint32_t message_tag = 0;

  friend bool operator==(const EarlyKey&, const EarlyKey&) = default;
};

// Fixed pool of datagram-sized slots, shared fairly: no peer holds more than its share. Allocates
// at construction only.
class EarlyBuffer {
 public:
  EarlyBuffer(int peers, std::uint32_t slots_per_peer, std::size_t datagram_bytes);

  // Keeps the datagram under `key`, and replaces an earlier one of the same `part` (WIRE 2.4: the
  // last copy ends the pass). Returns false if the peer's share is used up, or the datagram is
  // empty or too long.
  bool put(Rank from, const EarlyKey& key, std::uint64_t part, ByteSpan datagram);

  // Hands every datagram under `key` to `use`, in no particular order, and frees its slot. take()
  // takes datagrams of all peers, and take_from() those of one.
  using Use = std::function<void(Rank from, ByteSpan datagram)>;
  void take(const EarlyKey& key, const Use& use);
  void take_from(Rank peer, const EarlyKey& key, const Use& use);
  // Frees the slots of collectives below this number.
  void drop_collectives_below(std::uint32_t number);

  // Visits the keys of all datagrams held.
  void for_each_key(const std::function<void(Rank from, const EarlyKey& key)>& visit) const;

  std::uint32_t held() const { return held_; }

 private:
  struct Slot {
    EarlyKey key;
    std::uint64_t part = 0;
    std::uint32_t bytes = 0;  // 0 if the slot is free
  };
  void take_slots(std::size_t first, std::size_t last, const EarlyKey& key, const Use& use);

  std::uint32_t slots_per_peer_;
  std::size_t datagram_bytes_;
  std::vector<Slot> slots_;  // slots_per_peer_ consecutive ones for each peer
  std::unique_ptr<std::byte[]>
      memory_;  // uninitialised: pages that are never used are never touched
  std::uint32_t held_ = 0;
};

}  // namespace leeway::protocol
