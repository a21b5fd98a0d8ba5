// Which chunks of a flow its sender has left behind, so that what is missing of them was lost.
//
// A first pass goes chunk by chunk (schedule/packet_cursor.h). Its receiver need not wait for the
// end of it to ask for what was lost of a chunk (WIRE 5.9): a long flow is repaired meanwhile.
// What is watched are words of the ledger. A chunk is a word or a part of one, and chunks that
// share a word leave one soon after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/bitmap.h"
#include "base/limits.h"
#include "base/packet_index.h"
#include "base/time.h"

namespace leeway::protocol {

class ChunkWatch {
 public:
  static constexpr std::uint32_t kPackets = Bitmap::kWordBits;  // of a word
  // A word was left behind when so many later packets have come, and twice as many as any packet
  // was overtaken by.
  static constexpr std::uint32_t kOvertaken = 16;

  struct Left {
    std::uint32_t word = 0;
    // So many of its packets have left at most: a pass starts and ends in the middle of a word.
    std::uint32_t packets = 0;

    friend bool operator==(const Left&, const Left&) = default;
  };

  ChunkWatch() = default;
  explicit ChunkWatch(std::uint32_t packets) : packets_(packets) {}

  // A packet of the first pass came. Says which word was left behind, each once. Eager packets do
  // not wait for the gate, so they tell nothing of the pace. Where packets are overtaken by half a
  // word or more, no word counts as left behind: what is missing may still come.
  std::optional<Left> on_packet(Instant now, PacketIndex index, PacketPosition position) {
    if (position.value < limits::kEagerPackets || position.value >= packets_) return std::nullopt;
    if (position.value < newest_) {
      overtaken_by_ = std::max(overtaken_by_, newest_ - position.value);
      return std::nullopt;
    }
    const std::uint32_t word = index.value / kPackets;
    if (word_ == kNone) {
      began_ = now;
      first_ = position.value;
      word_ = word;
    }
    newest_ = position.value;
    std::optional<Left> left;
    if (left_ != kNone && newest_ - left_at_ >= std::max(kOvertaken, 2 * overtaken_by_))
      left = Left{std::exchange(left_, kNone), std::min(kPackets, left_at_)};
    if (word != word_) {
      left_ = std::exchange(word_, word);
      left_at_ = newest_;
    }
    return left;
  }

  // How long the rest of the first pass takes, at the pace that it had.
  Duration rest(Instant now) const {
    const std::uint32_t came = newest_ - first_;
    return came == 0 ? Duration::max() : (now - began_) / came * (packets_ - newest_);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Instant began_{0};
  std::uint32_t packets_ = 0;
  std::uint32_t first_ = 0;         // position of what came first, but for eager packets
  std::uint32_t newest_ = 0;        // of the newest
  std::uint32_t overtaken_by_ = 0;  // the most packets that one came behind
  std::uint32_t word_ = kNone;      // of the newest
  std::uint32_t left_ = kNone;      // the one before it, not told yet
  std::uint32_t left_at_ = 0;       // position at which it was left
};

}  // namespace leeway::protocol
