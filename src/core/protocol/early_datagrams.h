// Keeps datagrams that arrive before this rank has opened their operation, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "leeway/types.h"
#include "wire/packet.h"

namespace leeway::protocol {

// Fixed pool of datagram-sized slots, shared fairly: no peer holds more than its share,
// limits::kEarlySlotsPerPeer. Allocates at construction only.
class EarlyDatagrams {
 public:
  EarlyDatagrams(int peers, std::size_t datagram_bytes);

  // Result of judge() for a datagram whose operation is not open here.
  enum class Fate : std::uint8_t {
    closed,   // the operation is over
    future,   // the operation is limits::kRoundsAheadMax or more ahead
    kept,     // kept until the operation opens
    dropped,  // no room (WIRE 2.4), or the datagram is empty or too long
  };
  // Keeps the datagram if its operation may still open here and there is room. The datagram
  // replaces a copy that was kept before, because only the last copy says that the pass is over.
  // `opened_below` is the number of the next collective, or message of this stream, that opens
  // here.
  Fate judge(Rank from, const wire::DataHeader& header, std::uint32_t opened_below,
             ByteSpan datagram);

  // Call it when the operation opens: hands over the datagrams that were kept for it, in no
  // particular order, and frees their slots.
  using Use = std::function<void(Rank from, ByteSpan datagram)>;
  void take_collective(std::uint32_t number, const Use& use);
  void take_message(Rank from, std::uint32_t tag, std::uint32_t number, const Use& use);
  // Drops datagrams of collectives below this number, which will not be opened.
  void skip_collectives_below(std::uint32_t number);
  // Visits the messages of a tag for which a datagram is held.
  void for_each_message(std::uint32_t tag,
                        const std::function<void(Rank from, std::uint32_t number)>& visit) const;

 private:
  // Operation that a datagram belongs to.
  struct Key {
    std::uint32_t number = 0;
    bool message = false;
    std::uint32_t message_tag = 0;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Slot {
    Key key;
    std::uint64_t part = 0;   // the same for all copies of a packet
    std::uint32_t bytes = 0;  // 0 if the slot is free
  };
  bool put(Rank from, const Key& key, std::uint64_t part, ByteSpan datagram);
  void take_slots(std::size_t first, std::size_t last, const Key& key, const Use& use);
  void release(Slot& slot);

  std::size_t datagram_bytes_;
  std::vector<Slot> slots_;  // limits::kEarlySlotsPerPeer consecutive ones for each peer
  std::unique_ptr<std::byte[]>
      memory_;  // uninitialised: pages that are never used are never touched
  std::uint32_t held_ = 0;
};

}  // namespace leeway::protocol
