// Cuts the slices of a train at datagram borders.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "leeway/transport.h"

namespace leeway::transport {

inline std::size_t datagrams_of(std::size_t bytes, std::size_t segment_bytes) {
  return (bytes + segment_bytes - 1) / segment_bytes;
}
inline std::size_t datagrams_of(const Train& train) {
  return datagrams_of(train.total_bytes, train.segment_bytes);
}

// Walks through the bytes of a train's slices, in order. Callers must not ask for more bytes than
// the slices have. Copies of a cursor are cheap, so a caller can look ahead with a copy.
class SliceCursor {
 public:
  SliceCursor() = default;
  explicit SliceCursor(std::span<const Slice> slices) : next_(slices.data()) {}

  // Calls piece(data, bytes) for each contiguous part of the next `bytes`.
  template <typename Piece>
  void take(std::size_t bytes, Piece&& piece) {
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, next_->bytes - offset_);
      if (part > 0) piece(next_->data + offset_, part);
      bytes -= part;
      offset_ += part;
      if (offset_ == next_->bytes) {
        ++next_;
        offset_ = 0;
      }
    }
  }
  void copy_to(MutableByteSpan out) {
    std::byte* to = out.data();
    take(out.size(),
         [&to](const std::byte* data, std::size_t part) { to = std::copy_n(data, part, to); });
  }
  void skip(std::size_t bytes) {
    take(bytes, [](const std::byte*, std::size_t) {});
  }

 private:
  const Slice* next_ = nullptr;
  std::size_t offset_ = 0;
};

}  // namespace leeway::transport
