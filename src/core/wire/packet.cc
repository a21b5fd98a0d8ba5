#include "wire/packet.h"

#include <cstring>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "wire/code_grid.h"
#include "wire/fields.h"

namespace leeway::wire {
namespace {

bool read_kind(Reader& reader, FlowKind& kind) {
  return read_enum(reader.get<std::uint8_t>(), FlowKind::point, kind);
}

// Checks a weight (WIRE 2.2). Every comparison with NaN is false, so NaN is not valid.
bool valid_weight(float weight) {
  return weight == 0.0f || (weight >= limits::kWeightMin && weight <= limits::kWeightMax);
}

// Returns true for the types of datagrams that may be addressed to every rank at once (WIRE 1.5).
bool may_be_multicast(PacketType type) {
  return type == PacketType::data || type == PacketType::probe;
}

std::size_t header_bytes_of(PacketType type, std::size_t datagram_bytes) {
  return type == PacketType::data ? kDataHeaderBytes : datagram_bytes;
}

// Writes the one field that depends on the kind of flow: weight, message tag or tail. It lies at
// offset 40 of data and 32 of an END.
template <typename Header>
void write_flow_facts(Writer& writer, const Header& header) {
  if (header.kind == FlowKind::reduce) return writer.put(header.weight);
  writer.put(header.kind == FlowKind::point ? header.message_tag : header.tail);
}

template <typename Header>
bool read_flow_facts(Reader& reader, Header& header) {
  if (header.kind == FlowKind::reduce) {
    header.weight = reader.get<float>();
    return valid_weight(header.weight);
  }
  const auto value = reader.get<std::uint32_t>();
  (header.kind == FlowKind::point ? header.message_tag : header.tail) = value;
  return true;
}

// Flag in the `kind` byte of a data header: DataHeader::goes_on.
constexpr std::uint8_t kGoesOn = 0x80;

// Returns true if index, position and goes_on fit a packet of the flow, or a parity, whose number
// follows theirs (WIRE 2.2, 2.10).
bool is_placed(const DataHeader& header) {
  if (header.goes_on && (header.kind == FlowKind::point || header.attempt != 0)) return false;
  if (!header.is_parity()) {
    const bool last = header.position.value + 1 == header.flow_packets;
    return header.position.value < header.flow_packets && (last || !header.goes_on);
  }
  return header.kind != FlowKind::point && header.attempt == 0 &&
         header.position.value == header.index.value &&
         header.index.value - header.flow_packets < CodeGrid(header.flow_packets).parities_max();
}

// The field at offset 32 of data (WIRE 2.1) holds the position. For a message it holds the tail in
// bits 0 to 30 instead, and bit 31 is set in the last packet of a pass.
constexpr std::uint32_t kLastOfPass = std::uint32_t{1} << 31;

std::uint32_t position_field(const DataHeader& header) {
  if (header.kind != FlowKind::point) return header.position.value;
  const bool last = header.position.value + 1 == header.flow_packets;
  return header.tail | (last ? kLastOfPass : 0);
}

void take_position_field(std::uint32_t field, DataHeader& header) {
  if (header.kind != FlowKind::point) {
    header.position.value = field;
    return;
  }
  header.tail = field & ~kLastOfPass;
  header.position.value = (field & kLastOfPass) != 0 ? header.flow_packets - 1 : 0;
}

}  // namespace

std::optional<std::uint32_t> epoch_of(ByteSpan datagram) {
  constexpr std::size_t kEpochOffset = 8;
  if (datagram.size() < kPrefixBytes) return std::nullopt;
  return Reader(datagram.subspan(kEpochOffset)).get<std::uint32_t>();
}

bool is_for_process(ByteSpan datagram) {
  constexpr std::size_t kTypeOffset = 3;
  if (datagram.size() < kPrefixBytes) return false;
  const auto type = std::to_integer<std::uint8_t>(datagram[kTypeOffset]);
  return type == static_cast<std::uint8_t>(PacketType::size) ||
         type == static_cast<std::uint8_t>(PacketType::piece);
}

Refusal peek_prefix(ByteSpan datagram, Prefix& out) {
  if (datagram.size() < kPrefixBytes) return Refusal::truncated;
  if (datagram.size() > limits::kDatagramBytesMax) return Refusal::oversized;
  Reader reader(datagram);
  if (reader.get<std::uint16_t>() != kMagic) return Refusal::magic;
  if (reader.get<std::uint8_t>() != kVersion) return Refusal::version;
  const auto type_byte = reader.get<std::uint8_t>();
  out.payload_summed = (type_byte & kPayloadNotSummed) == 0;
  out.asks = (type_byte & kAsks) != 0;
  const std::uint8_t raw_type = type_byte & ~(kPayloadNotSummed | kAsks);
  if (raw_type < 1 || raw_type > static_cast<std::uint8_t>(PacketType::piece)) return Refusal::type;
  out.type = static_cast<PacketType>(raw_type);
  if ((!out.payload_summed || out.asks) && out.type != PacketType::data) return Refusal::type;
  reader.get<std::uint32_t>();  // checksum
  out.epoch = reader.get<std::uint32_t>();
  out.source = reader.get<std::uint16_t>();
  out.destination = reader.get<std::uint16_t>();
  out.sequence = reader.get<std::uint32_t>();
  if (is_bare(out.type) && datagram.size() != kPrefixBytes) return Refusal::truncated;  // WIRE 1.3
  return datagram.size() < header_bytes_of(out.type, datagram.size()) ? Refusal::truncated
                                                                      : Refusal::none;
}

Refusal decode_prefix(ByteSpan datagram, const Expectation* expect, Prefix& out) {
  const Refusal refusal = peek_prefix(datagram, out);
  if (refusal != Refusal::none) return refusal;
  if (expect != nullptr) {
    if (out.epoch != expect->epoch) return Refusal::epoch;
    const bool to_us = out.destination == expect->self ||
                       (out.destination == kEveryRank && may_be_multicast(out.type));
    if (!to_us || out.source >= expect->size || out.source == expect->self)
      return Refusal::misrouted;
  }
  const std::size_t header_bytes = header_bytes_of(out.type, datagram.size());
  std::uint32_t stored;
  std::memcpy(&stored, datagram.data() + kChecksumOffset, sizeof(stored));
  const std::uint32_t payload_crc = out.payload_summed ? crc32c(datagram.subspan(header_bytes)) : 0;
  return checksum(datagram.first(header_bytes), payload_crc) == stored ? Refusal::none
                                                                       : Refusal::checksum;
}

Refusal decode_data(ByteSpan datagram, DataHeader& out, ByteSpan& payload) {
  if (datagram.size() < kDataHeaderBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.round = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  out.goes_on = (kind & kGoesOn) != 0;
  if (!read_enum(kind & ~kGoesOn, FlowKind::point, out.kind) || !read_codec(reader, out.codec))
    return Refusal::field;
  out.attempt = reader.get<std::uint16_t>();
  out.index.value = reader.get<std::uint32_t>();
  const auto position = reader.get<std::uint32_t>();
  out.flow_packets = reader.get<std::uint32_t>();
  take_position_field(position, out);
  const bool facts = read_flow_facts(reader, out);
  out.opened_below = reader.get<std::uint32_t>();
  out.settled_below = reader.get<std::uint32_t>();
  out.tag_digest = reader.get<std::uint32_t>();
  payload = reader.rest();
  const bool sane = facts && out.flow_packets <= limits::kFlowPacketsMax && is_placed(out);
  return sane ? Refusal::none : Refusal::field;
}

Refusal decode_end(ByteSpan datagram, End& out) {
  if (datagram.size() != kEndBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.round = reader.get<std::uint32_t>();
  if (!read_kind(reader, out.kind)) return Refusal::field;
  reader.get<std::uint8_t>();
  out.attempt = reader.get<std::uint16_t>();
  out.flow_packets = reader.get<std::uint32_t>();
  const bool facts = read_flow_facts(reader, out);
  (out.kind == FlowKind::point ? out.tail : out.tag_digest) = reader.get<std::uint32_t>();
  return facts ? Refusal::none : Refusal::field;
}

Refusal decode_repair(ByteSpan datagram, Repair& out, ByteSpan& words) {
  if (datagram.size() < kRepairFixedBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.round = reader.get<std::uint32_t>();
  if (!read_kind(reader, out.kind)) return Refusal::field;
  out.last = reader.get<std::uint8_t>() != 0;
  out.attempt = reader.get<std::uint16_t>();
  out.base = reader.get<std::uint32_t>();
  out.words = reader.get<std::uint32_t>();
  out.message_tag = reader.get<std::uint32_t>();
  words = reader.rest();
  if (out.base % 64 != 0 || out.base >= limits::kFlowPacketsMax || out.attempt == 0)
    return Refusal::field;
  if (words.size() % sizeof(std::uint64_t) != 0 ||
      words.size() / sizeof(std::uint64_t) != out.words) {
    return Refusal::truncated;
  }
  return Refusal::none;
}

Refusal decode_size(ByteSpan datagram, Size& out) {
  if (datagram.size() < kSizeBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.bytes = reader.get<std::uint16_t>();
  if (!read_enum(reader.get<std::uint8_t>(), Size::Role::yours, out.role)) return Refusal::field;
  const std::size_t bytes = out.role == Size::Role::probe ? out.bytes : kSizeBytes;
  return datagram.size() == bytes ? Refusal::none : Refusal::truncated;
}

Refusal decode_piece(ByteSpan datagram, Piece& out, ByteSpan& content) {
  if (datagram.size() <= kPieceHeaderBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.whole = reader.get<std::uint16_t>();
  out.offset = reader.get<std::uint16_t>();
  content = reader.rest();
  const bool sane = out.whole <= limits::kDatagramBytesMax && out.offset < out.whole &&
                    content.size() < out.whole && out.offset % content.size() == 0 &&
                    out.whole <= content.size() * kPiecesMax;
  return sane ? Refusal::none : Refusal::field;
}

std::size_t encode_data(const Prefix& prefix, const DataHeader& header, std::uint32_t payload_crc,
                        MutableByteSpan out) {
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(header.round);
  writer.put(static_cast<std::uint8_t>(static_cast<std::uint8_t>(header.kind) |
                                       (header.goes_on ? kGoesOn : 0)));
  writer.put(static_cast<std::uint8_t>(header.codec));
  writer.put(header.attempt);
  writer.put(header.index.value);
  writer.put(position_field(header));
  writer.put(header.flow_packets);
  write_flow_facts(writer, header);
  writer.put(header.opened_below);
  writer.put(header.settled_below);
  writer.put(header.tag_digest);
  LEEWAY_ASSERT(writer.written() == kDataHeaderBytes);
  seal(out.first(kDataHeaderBytes), prefix.payload_summed ? payload_crc : 0);
  return kDataHeaderBytes;
}

std::size_t encode_end(const Prefix& prefix, const End& end, MutableByteSpan out) {
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(end.round);
  writer.put(static_cast<std::uint8_t>(end.kind));
  writer.put(std::uint8_t{0});
  writer.put(end.attempt);
  writer.put(end.flow_packets);
  write_flow_facts(writer, end);
  writer.put(end.kind == FlowKind::point ? end.tail : end.tag_digest);
  LEEWAY_ASSERT(writer.written() == kEndBytes);
  seal(out.first(kEndBytes), 0);
  return kEndBytes;
}

std::size_t encode_repair(const Prefix& prefix, const Repair& repair,
                          std::span<const std::uint64_t> words, MutableByteSpan out) {
  LEEWAY_ASSERT(repair.base % 64 == 0);
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(repair.round);
  writer.put(static_cast<std::uint8_t>(repair.kind));
  writer.put(static_cast<std::uint8_t>(repair.last));
  writer.put(repair.attempt);
  writer.put(repair.base);
  writer.put(static_cast<std::uint32_t>(words.size()));
  writer.put(repair.message_tag);
  for (std::uint64_t word : words) writer.put(word);
  seal(out.first(writer.written()), 0);
  return writer.written();
}

std::size_t encode_size(const Prefix& prefix, const Size& size, MutableByteSpan out) {
  const bool padded = size.role == Size::Role::probe;
  const std::size_t bytes = padded ? std::size_t{size.bytes} : kSizeBytes;
  LEEWAY_ASSERT(bytes >= kSizeBytes && bytes <= out.size());
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(size.bytes);
  writer.put(static_cast<std::uint8_t>(size.role));
  writer.put(std::uint8_t{0});
  std::memset(out.data() + kSizeBytes, 0, bytes - kSizeBytes);
  seal(out.first(bytes), 0);
  return bytes;
}

void encode_piece(const Prefix& prefix, const Piece& piece, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() > kPieceHeaderBytes);
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(piece.whole);
  writer.put(piece.offset);
  seal(out, 0);
}

std::size_t encode_bare(const Prefix& prefix, MutableByteSpan out) {
  Writer writer(out);
  write_prefix(writer, prefix);
  seal(out.first(kPrefixBytes), 0);
  return kPrefixBytes;
}

}  // namespace leeway::wire
