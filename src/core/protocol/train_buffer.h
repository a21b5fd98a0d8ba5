// Memory in which the core lays out one train (GSO batch): headers, freshly encoded payloads, and
// the slices that gather them with payload in the operation's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/contracts.h"
#include "base/limits.h"
#include "leeway/transport.h"

namespace leeway::protocol {

class TrainBuffer {
 public:
  // Limits of a train. kTrainBytesMax is just below UDP's largest payload (65,507).
  // kTrainDatagramsMax is the kernel's limit for one UDP_SEGMENT call (64 before Linux 6.9).
  static constexpr std::size_t kTrainBytesMax = 65'000;
  static constexpr std::size_t kTrainDatagramsMax = 64;
  // Room for the headers of kTrainDatagramsMax pieces, and for padding of their last ones.
  static constexpr std::size_t kPieceRoom = 32 * kTrainDatagramsMax;

  // `bytes_max` limits the bytes of every train, because some transports take only shorter trains.
  explicit TrainBuffer(std::size_t bytes_max = kTrainBytesMax)
      : most_(std::min(bytes_max, kTrainBytesMax)), bytes_max_(most_) {}

  // Starts a train to `to`. Each datagram will be cut into `pieces` pieces (pieces.h), for which
  // the train keeps room.
  void start(Rank to, std::size_t pieces = 1) {
    train_ = Train{.to = to};
    datagrams_max_ = kTrainDatagramsMax / pieces;
    kept_bytes_ = pieces == 1 ? 0 : kPieceRoom;
    slice_count_ = 0;
    used_ = 0;
    datagrams_ = 0;
    closed_ = false;
  }
  // Limits later trains of data to `bytes`, except a train of one datagram. Control datagrams
  // ignore the limit: the copies of one of them go in one train, and may be longer than a pacer's
  // quantum.
  void limit(std::size_t bytes) { bytes_max_ = std::min(bytes, most_); }
  // Changes the address of the finished train.
  void readdress(Rank to) { train_.to = to; }
  bool empty() const { return datagrams_ == 0; }
  std::size_t datagrams() const { return datagrams_; }

  // Returns true if one more datagram of data, as long as the first, may be appended. Only the last
  // datagram may be shorter; call close() after it.
  bool has_room() const { return has_room_in(bytes_max_); }
  // Returns true if a datagram of this length can be appended, whatever the limit is.
  bool fits(std::size_t bytes) const {
    return has_room_in(most_) && (datagrams_ == 0 || bytes <= train_.segment_bytes);
  }
  void close() { closed_ = true; }

  // Returns room for a header, or for a header and a payload behind it.
  MutableByteSpan scratch(std::size_t bytes) {
    LEEWAY_ASSERT(used_ + bytes <= memory_.size());
    return MutableByteSpan(memory_).subspan(used_, bytes);
  }

  // Appends one datagram, made of the first `header_bytes` of the scratch area and `payload` (which
  // may lie right behind it).
  void append(std::size_t header_bytes, ByteSpan payload) {
    const std::size_t bytes = header_bytes + payload.size();
    LEEWAY_ASSERT(fits(bytes));
    if (datagrams_ == 0) train_.segment_bytes = bytes;
    const std::byte* header = memory_.data() + used_;
    const bool contiguous = payload.data() == header + header_bytes;
    add_slice(header, contiguous ? bytes : header_bytes);
    if (!contiguous && !payload.empty()) add_slice(payload.data(), payload.size());
    used_ += contiguous ? bytes : header_bytes;
    train_.total_bytes += bytes;
    closed_ |= bytes < train_.segment_bytes;
    ++datagrams_;
  }

  // Memory of headers and freshly encoded payloads.
  ByteSpan memory() const { return memory_; }

  Rank to() const { return train_.to; }
  std::size_t segment_bytes() const { return train_.segment_bytes; }
  std::size_t total_bytes() const { return train_.total_bytes; }

  // The finished train; valid until start().
  const Train& train() {
    train_.slices = std::span(slices_.data(), slice_count_);
    return train_;
  }

 private:
  bool has_room_in(std::size_t bytes_max) const {
    return datagrams_ == 0 ||
           (!closed_ && datagrams_ < datagrams_max_ &&
            train_.total_bytes + train_.segment_bytes + kept_bytes_ <= bytes_max);
  }

  void add_slice(const std::byte* data, std::size_t bytes) {
    // Datagrams that lie back to back in the scratch area become one slice.
    if (slice_count_ > 0) {
      Slice& last = slices_[slice_count_ - 1];
      if (last.data + last.bytes == data) {
        last.bytes += bytes;
        return;
      }
    }
    slices_[slice_count_++] = {data, bytes};
  }

  Train train_;
  std::size_t slice_count_ = 0;
  std::size_t used_ = 0;
  std::size_t most_;
  std::size_t bytes_max_;
  std::size_t datagrams_max_ = kTrainDatagramsMax;
  std::size_t kept_bytes_ = 0;
  std::size_t datagrams_ = 0;
  bool closed_ = false;  // a short datagram was appended: it must stay the last
  std::array<Slice, 2 * kTrainDatagramsMax> slices_;
  alignas(64) std::array<std::byte, kTrainBytesMax + limits::kDatagramBytesMax> memory_;
};

}  // namespace leeway::protocol
