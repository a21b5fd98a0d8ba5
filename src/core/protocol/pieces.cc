#include "protocol/pieces.h"

#include <algorithm>
#include <cstring>

#include "base/contracts.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {
namespace {

// Length in bytes of the longest datagram that is cut. Longer ones are not sent over networks whose
// paths are measured.
constexpr std::size_t kPlaceBytes = limits::kFrameBytesMax;

ByteSpan gather(const Train& train, std::vector<std::byte>& whole) {
  if (whole.empty()) whole.resize(TrainBuffer::kTrainBytesMax);
  LEEWAY_ASSERT(train.total_bytes <= whole.size());
  std::size_t at = 0;
  for (const Slice& slice : train.slices) {
    std::memcpy(whole.data() + at, slice.data, slice.bytes);
    at += slice.bytes;
  }
  return ByteSpan(whole).first(at);
}

void append_piece(const wire::Prefix& prefix, ByteSpan datagram, std::size_t offset,
                  std::size_t content_bytes, TrainBuffer& out) {
  const MutableByteSpan piece = out.scratch(wire::kPieceHeaderBytes + content_bytes);
  const MutableByteSpan content = piece.subspan(wire::kPieceHeaderBytes);
  const std::size_t bytes = std::min(content_bytes, datagram.size() - offset);
  std::memcpy(content.data(), datagram.data() + offset, bytes);
  std::memset(content.data() + bytes, 0, content_bytes - bytes);
  wire::encode_piece(prefix,
                     {.whole = static_cast<std::uint16_t>(datagram.size()),
                      .offset = static_cast<std::uint16_t>(offset)},
                     piece);
  out.append(piece.size(), {});
}

}  // namespace

void cut_train(TrainBuffer& train, std::size_t most, std::vector<std::byte>& whole) {
  const Rank to = train.to();
  const std::size_t segment_bytes = train.segment_bytes();
  const std::size_t pieces = pieces_of(segment_bytes, most);
  LEEWAY_ASSERT(pieces * train.datagrams() <= TrainBuffer::kTrainDatagramsMax);
  const std::size_t content_bytes = (segment_bytes + pieces - 1) / pieces;
  const ByteSpan bytes = gather(train.train(), whole);
  train.limit(TrainBuffer::kTrainBytesMax);
  train.start(to);
  for (std::size_t at = 0; at < bytes.size(); at += segment_bytes) {
    const ByteSpan datagram = bytes.subspan(at, std::min(segment_bytes, bytes.size() - at));
    // Only the train's last datagram may be so short that it travels whole.
    if (datagram.size() <= wire::kPieceHeaderBytes + content_bytes) {
      std::memcpy(train.scratch(datagram.size()).data(), datagram.data(), datagram.size());
      train.append(datagram.size(), {});
      return;
    }
    wire::Prefix prefix;
    LEEWAY_ASSERT(wire::peek_prefix(datagram, prefix) == wire::Refusal::none);
    prefix.type = wire::PacketType::piece;
    prefix.payload_summed = true;
    prefix.asks = false;
    for (std::size_t offset = 0; offset < datagram.size(); offset += content_bytes)
      append_piece(prefix, datagram, offset, content_bytes, train);
  }
}

ByteSpan Pieces::add(std::uint32_t number, const wire::Piece& piece, ByteSpan content) {
  if (piece.whole > kPlaceBytes) return {};
  Place& place = places_[number % kPlaces];
  const std::size_t at = (number % kPlaces) * kPlaceBytes;
  if (place.content_bytes == 0 || after(number, place.number)) {
    if (memory_.empty()) memory_.resize(kPlaces * kPlaceBytes);
    place = {number, static_cast<std::uint32_t>(content.size()), piece.whole, 0};
  }
  if (number != place.number || piece.whole != place.whole || content.size() != place.content_bytes)
    return {};
  const std::size_t count = (place.whole + content.size() - 1) / content.size();
  const std::uint64_t all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const std::uint64_t bit = std::uint64_t{1} << piece.offset / content.size();
  if ((place.arrived & bit) != 0) return {};
  std::memcpy(memory_.data() + at + piece.offset, content.data(),
              std::min<std::size_t>(content.size(), piece.whole - piece.offset));
  place.arrived |= bit;
  return place.arrived == all ? ByteSpan(memory_).subspan(at, place.whole) : ByteSpan();
}

}  // namespace leeway::protocol
