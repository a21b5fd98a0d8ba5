// Encodes and decodes reports (WIRE 3), and the operation tags in them.
#include <utility>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "wire/fields.h"

namespace leeway::wire {
namespace {

std::uint8_t settled_flags(const OpenRound& round) {
  const bool unmatched = round.point_to_point && round.failure == StatusCode::kMismatch;
  return static_cast<std::uint8_t>(
      (round.point_to_point ? 1 : 0) | (round.reduce_settled || unmatched ? 2 : 0) |
      (round.spread_settled ? 4 : 0) | (round.sending || round.first != kNoRank ? 8 : 0) |
      (round.failed() ? 16 : 0));
}

// The bit for OperationTag::confirm_use in the byte that holds a tag's spread_codec.
constexpr std::uint8_t kConfirmsUse = 0x80;

// The bit for Report::heard_goodbye in the byte that holds a report's open_count.
constexpr std::uint32_t kHeardGoodbye = 0x80;

// Bits in the byte that holds a report's stream_count. They say which optional fields follow.
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

// Reads a tag. Returns false if a byte of it names no enumerator.
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
    const bool unmatched = std::exchange(round.reduce_settled, false);
    if (given_up) round.failure = unmatched ? StatusCode::kMismatch : StatusCode::kDeadlineExceeded;
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
  for (OpenRound& entry : out.entries()) known &= read_open_round(reader, entry);
  for (OpenedStream& stream : out.opened_streams()) {
    stream.tag = reader.get<std::uint32_t>();
    stream.opened_below = reader.get<std::uint32_t>();
  }
  if (!reader.ok() || !reader.rest().empty()) return Refusal::truncated;
  return known ? Refusal::none : Refusal::field;
}

std::size_t report_bytes(const Report& report) {
  std::size_t bytes = kReportFixedBytes + (tells_marks(report) ? kReportMarksBytes : 0) +
                      (tells_host(report) ? kReportHostBytes : 0) +
                      kOpenedStreamBytes * report.stream_count;
  for (const OpenRound& entry : report.entries()) bytes += entry_bytes(entry);
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
  for (const OpenRound& entry : report.entries()) write_open_round(writer, entry);
  for (const OpenedStream& stream : report.opened_streams()) {
    writer.put(stream.tag);
    writer.put(stream.opened_below);
  }
  seal(out.first(writer.written()), 0);
  return writer.written();
}

}  // namespace leeway::wire
