// Keeps datagrams of operations that this rank has not opened yet.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "protocol/early_buffer.h"
#include "wire/packet.h"

namespace leeway::protocol {

class EarlyDatagrams {
 public:
  EarlyDatagrams(int peers, std::size_t datagram_bytes)
      : buffer_(peers, limits::kEarlySlotsPerPeer, datagram_bytes) {}

  // Result of judge() for a datagram whose operation is not open here.
  enum class Fate : std::uint8_t {
    closed,   // the operation is over
    future,   // the operation is limits::kRoundsAheadMax or more ahead
    kept,     // kept until the operation opens
    dropped,  // no room (WIRE 2.4)
  };
  // Decides the fate of the datagram. All operations of its numbering below `opened_below` have
  // been opened.
  Fate judge(Rank from, const wire::DataHeader& header, std::uint32_t opened_below,
             ByteSpan datagram) {
    const auto ahead = static_cast<std::int32_t>(header.round - opened_below);
    if (ahead < 0) return Fate::closed;
    if (ahead >= std::int32_t{limits::kRoundsAheadMax}) return Fate::future;
    const bool point = header.kind == wire::FlowKind::point;
    const EarlyKey key{
        .number = header.round, .message = point, .message_tag = point ? header.message_tag : 0};
    const std::uint64_t part = static_cast<std::uint64_t>(header.kind) << 32 | header.index.value;
    return buffer_.put(from, key, part, datagram) ? Fate::kept : Fate::dropped;
  }

  // Call it when the operation opens: hands over the datagrams that were kept for it, in no
  // particular order.
  void take_collective(std::uint32_t number, const EarlyBuffer::Use& use) {
    buffer_.take({.number = number}, use);
  }
  void take_message(Rank from, std::uint32_t tag, std::uint32_t number,
                    const EarlyBuffer::Use& use) {
    buffer_.take_from(from, {.number = number, .message = true, .message_tag = tag}, use);
  }
  // Drops datagrams of collectives below this number, which will not be opened.
  void skip_collectives_below(std::uint32_t number) { buffer_.drop_collectives_below(number); }
  // Visits the messages of a tag for which a datagram is held.
  template <typename Visit>
  void for_each_message(std::uint32_t tag, Visit&& visit) const {
    buffer_.for_each_key([&](Rank from, const EarlyKey& key) {
      if (key.message && key.message_tag == tag) visit(from, key.number);
    });
  }

 private:
  EarlyBuffer buffer_;
};

}  // namespace leeway::protocol
