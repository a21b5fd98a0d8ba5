#include "transport/inproc/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace leeway::transport {
namespace {

// Records start at multiples of this size. So a header never crosses the end of the memory, and
// payloads are aligned for vector loads.
constexpr std::size_t kGrain = 16;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

}  // namespace

ByteRing::ByteRing(std::size_t capacity) : memory_(std::max(round_up(capacity), 2 * kGrain)) {
  static_assert(sizeof(Header) <= kGrain);
}

std::size_t ByteRing::record_bytes(std::size_t datagram_bytes) {
  return kGrain + round_up(datagram_bytes);
}

std::optional<MutableByteSpan> ByteRing::append(Rank from, std::size_t datagram_bytes) {
  const std::size_t record = record_bytes(datagram_bytes);
  const std::size_t before_end = memory_.size() - place(write_);
  const std::size_t padding = record > before_end ? before_end : 0;
  if (write_ - released_ + padding + record > memory_.size()) return std::nullopt;
  if (padding > 0) {
    write_header(write_, {0, kNoRank, true});
    write_ += padding;
  }
  write_header(write_, {static_cast<std::uint32_t>(datagram_bytes), from, false});
  std::byte* const payload = memory_.data() + place(write_) + kGrain;
  write_ += record;
  return MutableByteSpan{payload, datagram_bytes};
}

std::optional<Received> ByteRing::read() {
  if (!unread()) return std::nullopt;
  Header header = header_at(read_);
  if (header.skip_to_front) {
    read_ += memory_.size() - place(read_);
    header = header_at(read_);
  }
  std::byte* const payload = memory_.data() + place(read_) + kGrain;
  read_ += record_bytes(header.datagram_bytes);
  return Received{header.from, {payload, header.datagram_bytes}};
}

void ByteRing::release_read() {
  released_ = read_;
}

void ByteRing::write_header(std::uint64_t position, const Header& header) {
  std::memcpy(memory_.data() + place(position), &header, sizeof(header));
}

ByteRing::Header ByteRing::header_at(std::uint64_t position) const {
  Header header;
  std::memcpy(&header, memory_.data() + place(position), sizeof(header));
  return header;
}

}  // namespace leeway::transport
