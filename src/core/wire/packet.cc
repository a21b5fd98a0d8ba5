#include "wire/packet.h"

#include <bit>
#include <cstring>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "wire/code_grid.h"

namespace leeway::wire {
namespace {

static_assert(std::endian::native == std::endian::little,
              "scalars are stored as they lie in memory; a big-endian port needs byte swaps in "
              "put() and get()");

constexpr std::size_t kChecksumOffset = 4;
// Flags in the byte of the type.
constexpr std::uint8_t kPayloadNotSummed = 0x80;
constexpr std::uint8_t kAsks = 0x40;

// Sequential little-endian writer into a buffer whose size the caller has checked.
class Writer {
 public:
  explicit Writer(MutableByteSpan out) : out_(out) {}
  template <typename T>
  void put(T value) {
    LEEWAY_ASSERT(at_ + sizeof(T) <= out_.size());
    std::memcpy(out_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  std::size_t written() const { return at_; }

 private:
  MutableByteSpan out_;
  std::size_t at_ = 0;
};

// Sequential reader. Reading past the end yields zeros and clears ok().
class Reader {
 public:
  explicit Reader(ByteSpan in) : in_(in) {}
  template <typename T>
  T get() {
    T value{};
    if (in_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, in_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  bool ok() const { return ok_; }
  ByteSpan rest() const { return in_.subspan(at_); }

 private:
  ByteSpan in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// WIRE 1.2: CRC32C over payload, then the header bytes before and after the checksum field.
std::uint32_t checksum(ByteSpan header, std::uint32_t payload_crc) {
  std::uint32_t crc = crc32c(header.first(kChecksumOffset), payload_crc);
  return crc32c(header.subspan(kChecksumOffset + sizeof(std::uint32_t)), crc);
}

void write_prefix(Writer& writer, const Prefix& prefix) {
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(static_cast<std::uint8_t>(static_cast<std::uint8_t>(prefix.type) |
                                       (prefix.payload_summed ? 0 : kPayloadNotSummed) |
                                       (prefix.asks ? kAsks : 0)));
  writer.put(std::uint32_t{0});  // checksum, filled in by seal()
  writer.put(prefix.epoch);
  writer.put(prefix.source);
  writer.put(prefix.destination);
  writer.put(prefix.sequence);
}

void seal(MutableByteSpan header, std::uint32_t payload_crc) {
  const std::uint32_t crc = checksum(header, payload_crc);
  std::memcpy(header.data() + kChecksumOffset, &crc, sizeof(crc));
}

// Decodes an enumerator. Returns false if the byte is beyond `last` and has no name.
template <typename Enum>
bool read_enum(std::uint8_t byte, Enum last, Enum& value) {
  value = static_cast<Enum>(byte);
  return byte <= static_cast<std::uint8_t>(last);
}

bool read_kind(Reader& reader, FlowKind& kind) {
  return read_enum(reader.get<std::uint8_t>(), FlowKind::point, kind);
}

// Codec::automatic is never sent: ranks agree on a codec for it before an operation begins.
bool read_codec(Reader& reader, Codec& codec) {
  return read_enum(reader.get<std::uint8_t>(), Codec::sparse, codec);
}

// WIRE 2.2. Every comparison with NaN is false, so it is not valid.
bool valid_weight(float weight) {
  return weight == 0.0f || (weight >= limits::kWeightMin && weight <= limits::kWeightMax);
}

// WIRE 1.5: types that may be addressed to every rank at once.
bool may_be_multicast(PacketType type) {
  return type == PacketType::data || type == PacketType::probe;
}

std::size_t header_bytes_of(PacketType type, std::size_t datagram_bytes) {
  return type == PacketType::data ? kDataHeaderBytes : datagram_bytes;
}

std::uint8_t settled_flags(const OpenRound& round) {
  return static_cast<std::uint8_t>((round.point_to_point ? 1 : 0) | (round.reduce_settled ? 2 : 0) |
                                   (round.spread_settled ? 4 : 0) |
                                   (round.sending || round.first != kNoRank ? 8 : 0) |
                                   (round.failed() ? 16 : 0));
}

// Flag in the byte of a tag's spread_codec.
constexpr std::uint8_t kConfirmsUse = 0x80;

// Flag in the byte of a report's open_count.
constexpr std::uint32_t kHeardGoodbye = 0x80;

// Flags in the byte of its stream_count.
constexpr std::uint32_t kTellsMarks = 0x80;
bool tells_marks(const Report& report) {
  return (report.ect | report.ce) != 0;
}
constexpr std::uint32_t kTellsHost = 0x40;
bool tells_host(const Report& report) {
  return report.grant != kNoGrant || report.host_drops != 0;
}

static_assert(kOpenRoundBytes == 5 + kTagBytes);

// Packs two values below 16 into a byte.
std::uint8_t nibbles(unsigned low, unsigned high) {
  return static_cast<std::uint8_t>(low | high << 4);
}

void write_tag(Writer& writer, const OperationTag& tag) {
  const auto number = [](auto value) { return static_cast<unsigned>(value); };
  writer.put(nibbles(number(tag.operation), tag.parts));
  writer.put(nibbles(number(tag.dtype), number(tag.reduce_op)));
  writer.put(static_cast<std::uint8_t>(tag.codec));
  writer.put(
      static_cast<std::uint8_t>(number(tag.spread_codec) | (tag.confirm_use ? kConfirmsUse : 0)));
  writer.put(nibbles(number(tag.delivery) | number(tag.spread) << 2, number(tag.estimator)));
  writer.put(tag.root);
  writer.put(tag.codec_settings);
  writer.put(tag.spread_settings);
  writer.put(tag.count);
  writer.put(tag.shape);
}

void write_message(Writer& writer, const OpenRound& round) {
  writer.put(static_cast<std::uint8_t>(round.tag.dtype));
  writer.put(static_cast<std::uint8_t>(round.tag.codec));
  writer.put(round.tag.codec_settings);
  writer.put(round.message_tag);
  writer.put(round.tag.count);
}

void write_open_round(Writer& writer, const OpenRound& round) {
  writer.put(round.round);
  writer.put(settled_flags(round));
  if (round.point_to_point) return write_message(writer, round);
  write_tag(writer, round.tag);
  if (!round.failed()) return;
  writer.put(static_cast<std::uint8_t>(round.failure));
  writer.put(round.about);
  if (round.first != kNoRank) writer.put(round.first);
  if (round.failure == StatusCode::kMismatch) write_tag(writer, round.other);
}

// Returns false if a value has no name.
bool read_tag(Reader& reader, OperationTag& tag) {
  const auto operation = reader.get<std::uint8_t>();
  bool known = read_enum(operation & 15, OperationKind::split, tag.operation);
  tag.parts = operation >> 4;
  const auto types = reader.get<std::uint8_t>();
  known &= read_enum(types & 15, DataType::boolean, tag.dtype);
  known &= read_enum(types >> 4, ReduceOp::bxor, tag.reduce_op);
  known &= read_codec(reader, tag.codec);
  const auto spread = reader.get<std::uint8_t>();
  known &= read_enum(spread & ~kConfirmsUse, Codec::sparse, tag.spread_codec);
  tag.confirm_use = (spread & kConfirmsUse) != 0;
  const auto classes = reader.get<std::uint8_t>();
  known &= read_enum(classes & 3, Delivery::Kind::best_effort, tag.delivery);
  known &= read_enum(classes >> 2 & 3, Delivery::Kind::best_effort, tag.spread);
  known &= read_enum(classes >> 4, Estimator::augmented, tag.estimator);
  tag.root = reader.get<std::uint16_t>();
  tag.codec_settings = reader.get<std::uint16_t>();
  tag.spread_settings = reader.get<std::uint16_t>();
  tag.count = reader.get<std::uint64_t>();
  tag.shape = reader.get<std::uint32_t>();
  return known;
}

bool read_message(Reader& reader, OpenRound& round) {
  round.tag = tag_of_message(round.sending);
  bool known = read_enum(reader.get<std::uint8_t>(), DataType::boolean, round.tag.dtype);
  known &= read_codec(reader, round.tag.codec);
  round.tag.codec_settings = reader.get<std::uint16_t>();
  round.message_tag = reader.get<std::uint32_t>();
  round.tag.count = reader.get<std::uint64_t>();
  return known;
}

bool read_open_round(Reader& reader, OpenRound& round) {
  round.round = reader.get<std::uint32_t>();
  const auto flags = reader.get<std::uint8_t>();
  round.point_to_point = flags & 1;
  round.reduce_settled = flags & 2;
  round.spread_settled = flags & 4;
  round.sending = round.point_to_point && (flags & 8) != 0;
  const bool second_hand = !round.point_to_point && (flags & 8) != 0;
  round.first = kNoRank;
  round.failure = StatusCode::kOk;
  round.about = kNoRank;
  if (round.point_to_point) {
    const bool given_up = (flags & 16) != 0;
    if (given_up) round.failure = StatusCode::kDeadlineExceeded;
    return read_message(reader, round) && (round.sending || !given_up);
  }
  bool known = read_tag(reader, round.tag);
  if ((flags & 16) == 0) return known && !second_hand;
  known &= read_enum(reader.get<std::uint8_t>(), StatusCode::kInternal, round.failure);
  round.about = reader.get<std::uint16_t>();
  if (second_hand) round.first = reader.get<std::uint16_t>();
  if (round.failure == StatusCode::kMismatch) known &= read_tag(reader, round.other);
  return known && round.failed();
}

// Writes a flow's weight, message tag or tail: at offset 40 of data, 32 of END.
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

// Flag in the byte of the kind of data.
constexpr std::uint8_t kGoesOn = 0x80;

// Returns whether the packet's place is in its flow, or in the parity behind it (WIRE 2.2, 2.10).
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

// Offset 32 of data. For a message, bit 31 is set in the last packet of a pass, and the rest is the
// tail.
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

std::uint32_t digest(const OperationTag& tag, bool point_to_point) {
  OperationTag common = tag;
  if (point_to_point) {
    common.operation = OperationKind{0};
    common.count = 0;
  }
  std::array<std::byte, kTagBytes> bytes;
  Writer writer(bytes);
  write_tag(writer, common);
  LEEWAY_ASSERT(writer.written() == kTagBytes);
  return crc32c(bytes);
}

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

Refusal decode_report(ByteSpan datagram, Report& out) {
  if (datagram.size() < kReportFixedBytes) return Refusal::truncated;
  Reader reader(datagram.subspan(kPrefixBytes));
  out.largest_sequence = reader.get<std::uint32_t>();
  out.received = reader.get<std::uint32_t>();
  out.delay_us = reader.get<std::uint32_t>();
  out.opened_below = reader.get<std::uint32_t>();
  out.point_opened_below = reader.get<std::uint32_t>();
  out.group_largest = reader.get<std::uint32_t>();
  const auto counts = reader.get<std::uint32_t>();
  out.open_count = counts & 0x7F;
  out.heard_goodbye = (counts & kHeardGoodbye) != 0;
  out.missed = counts >> 8;
  const auto streams = reader.get<std::uint32_t>();
  out.stream_count = streams & 0x3F;
  out.arrived_us = streams >> 8;
  out.received_bytes = reader.get<std::uint32_t>();
  out.ect = out.ce = 0;
  if ((streams & kTellsMarks) != 0) {
    out.ect = reader.get<std::uint32_t>();
    out.ce = reader.get<std::uint32_t>();
  }
  out.grant = kNoGrant;
  out.host_drops = 0;
  if ((streams & kTellsHost) != 0) {
    out.grant = reader.get<std::uint32_t>();
    out.host_drops = reader.get<std::uint16_t>();
  }
  if (out.open_count > out.open.size() || out.stream_count > out.streams.size())
    return Refusal::field;
  bool known = true;
  for (std::uint32_t i = 0; i < out.open_count; ++i) known &= read_open_round(reader, out.open[i]);
  for (OpenedStream& stream : std::span(out.streams).first(out.stream_count)) {
    stream.tag = reader.get<std::uint32_t>();
    stream.opened_below = reader.get<std::uint32_t>();
  }
  if (!reader.ok() || !reader.rest().empty()) return Refusal::truncated;
  return known ? Refusal::none : Refusal::field;
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

std::size_t report_bytes(const Report& report) {
  std::size_t bytes = kReportFixedBytes + (tells_marks(report) ? kReportMarksBytes : 0) +
                      (tells_host(report) ? kReportHostBytes : 0) +
                      kOpenedStreamBytes * report.stream_count;
  for (const OpenRound& round : std::span(report.open).first(report.open_count))
    bytes += entry_bytes(round);
  return bytes;
}

std::size_t entry_bytes(const OpenRound& round) {
  if (round.point_to_point) return kOpenMessageBytes;
  const std::size_t told = round.first != kNoRank ? sizeof(Rank) : 0;
  if (round.failure == StatusCode::kMismatch) return kDisputedRoundBytes + told;
  return round.failed() ? kFailedRoundBytes + told : kOpenRoundBytes;
}

std::size_t encode_report(const Prefix& prefix, const Report& report, MutableByteSpan out) {
  LEEWAY_ASSERT(report.open_count <= report.open.size() && report.missed >> kMissedRounds == 0);
  LEEWAY_ASSERT(report.stream_count <= report.streams.size() &&
                report.arrived_us >> kArrivedBits == 0);
  Writer writer(out);
  write_prefix(writer, prefix);
  writer.put(report.largest_sequence);
  writer.put(report.received);
  writer.put(report.delay_us);
  writer.put(report.opened_below);
  writer.put(report.point_opened_below);
  writer.put(report.group_largest);
  writer.put(report.open_count | (report.heard_goodbye ? kHeardGoodbye : 0) | report.missed << 8);
  const bool marks = tells_marks(report);
  const bool host = tells_host(report);
  writer.put(report.stream_count | (marks ? kTellsMarks : 0) | (host ? kTellsHost : 0) |
             report.arrived_us << 8);
  writer.put(report.received_bytes);
  if (marks) {
    writer.put(report.ect);
    writer.put(report.ce);
  }
  if (host) {
    writer.put(report.grant);
    writer.put(report.host_drops);
  }
  for (std::uint32_t i = 0; i < report.open_count; ++i) write_open_round(writer, report.open[i]);
  for (const OpenedStream& stream : std::span(report.streams).first(report.stream_count)) {
    writer.put(stream.tag);
    writer.put(stream.opened_below);
  }
  seal(out.first(writer.written()), 0);
  return writer.written();
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
