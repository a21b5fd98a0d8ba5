// One valid datagram of every type, with a value in every field.
#pragma once

#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "wire/packet.h"

namespace leeway::wire::testing {

using Datagram = std::vector<std::byte>;

inline constexpr Expectation kExpectation{.epoch = 0xCAFE1234, .self = 3, .size = 5};

inline Prefix prefix_of(PacketType type) {
  return {type, kExpectation.epoch, 1, 3, 0x01020304};
}

inline DataHeader data_header() {
  DataHeader header;
  header.round = 70001;
  header.kind = FlowKind::spread;
  header.codec = Codec::bf16;
  header.attempt = 2;
  header.index = {17};
  header.position = {5};
  header.flow_packets = 20;
  header.tail = 301;
  header.opened_below = 70003;
  header.settled_below = 70000;
  header.tag_digest = 0xABCD0123;
  return header;
}

inline Datagram data_datagram(const DataHeader& header = data_header(),
                              std::size_t payload_bytes = 40,
                              const Prefix& prefix = prefix_of(PacketType::data)) {
  Datagram payload(payload_bytes);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 37 + 1);
  Datagram datagram(kDataHeaderBytes);
  encode_data(prefix, header, crc32c(payload), datagram);
  datagram.insert(datagram.end(), payload.begin(), payload.end());
  return datagram;
}

inline OperationTag tag() {
  OperationTag tag;
  tag.operation = OperationKind::reduce;
  tag.dtype = DataType::bf16;
  tag.reduce_op = ReduceOp::avg;
  tag.codec = Codec::fp16;
  tag.spread_codec = Codec::bf16;
  tag.delivery = Delivery::Kind::best_effort;
  tag.spread = Delivery::Kind::bounded;
  tag.estimator = Estimator::augmented;
  tag.root = 4;
  tag.codec_settings = 0x0221;
  tag.spread_settings = 0x1A83;
  tag.count = 0x0102030405060708;
  tag.shape = 0x0A0B0C0D;
  return tag;
}

inline Report report(std::uint32_t open_count = 3) {
  Report report;
  report.largest_sequence = 900;
  report.received = 880;
  report.delay_us = 55;
  report.received_bytes = 0x01020304;
  report.arrived_us = 0xF10203;
  report.ect = 0x11121314;
  report.ce = 0x21222324;
  report.opened_below = 31;
  report.point_opened_below = 7;
  report.group_largest = 21;
  report.open_count = open_count;
  report.missed = 0x800005;
  for (std::uint32_t i = 0; i < open_count; ++i) {
    report.open[i] = {
        .round = 28 + i, .point_to_point = i % 2 == 1, .sending = i % 4 == 3, .tag = tag()};
    if (i % 2 == 1) {  // a message has a tag of the caller's, and fewer values to agree about
      report.open[i].message_tag = 0x70000000 + i;
      OperationTag& of_message = report.open[i].tag = tag_of_message(i % 4 == 3);
      of_message.dtype = DataType::f16;
      of_message.codec = Codec::fp16;
      of_message.codec_settings = 0x0220;
      of_message.count = 0x0102030405060708;
    }
    report.open[i].reduce_settled = i % 2 == 0;
    report.open[i].spread_settled = i % 3 == 0;
  }
  report.stream_count = 2;
  report.streams[0] = {.tag = 0x70000001, .opened_below = 12};
  report.streams[1] = {.tag = 5, .opened_below = 2};
  return report;
}

inline Datagram report_datagram(const Report& value = report()) {
  Datagram datagram(limits::kDatagramBytesMax);
  datagram.resize(encode_report(prefix_of(PacketType::report), value, datagram));
  return datagram;
}

inline Datagram end_datagram(const End& end = {.round = 9,
                                               .kind = FlowKind::point,
                                               .attempt = 4,
                                               .flow_packets = 77,
                                               .tail = 33,
                                               .message_tag = 0x70000002}) {
  Datagram datagram(limits::kDatagramBytesMax);
  datagram.resize(encode_end(prefix_of(PacketType::end), end, datagram));
  return datagram;
}

inline Datagram repair_datagram(const std::vector<std::uint64_t>& words = {1, 0, ~std::uint64_t{0}},
                                Repair repair = {.round = 9,
                                                 .kind = FlowKind::reduce,
                                                 .attempt = 3,
                                                 .base = 128,
                                                 .last = false,
                                                 .message_tag = 3}) {
  Datagram datagram(limits::kDatagramBytesMax);
  datagram.resize(encode_repair(prefix_of(PacketType::repair), repair, words, datagram));
  return datagram;
}

inline Datagram bare_datagram(PacketType type) {
  Datagram datagram(limits::kDatagramBytesMax);
  datagram.resize(encode_bare(prefix_of(type), datagram));
  return datagram;
}

inline Datagram size_datagram() {
  Datagram datagram(100);
  encode_size(prefix_of(PacketType::size), {.bytes = 100}, datagram);
  return datagram;
}

inline Datagram piece_datagram() {
  Datagram datagram(kPieceHeaderBytes + 40);
  std::fill(datagram.begin() + kPieceHeaderBytes, datagram.end(), std::byte{7});
  encode_piece(prefix_of(PacketType::piece), {.whole = 100, .offset = 80}, datagram);
  return datagram;
}

// Makes one datagram of each type except pieces, since a piece of another length is also valid.
inline std::vector<Datagram> one_of_each() {
  return {data_datagram(),
          report_datagram(),
          end_datagram(),
          repair_datagram(),
          bare_datagram(PacketType::probe),
          bare_datagram(PacketType::goodbye),
          bare_datagram(PacketType::given_up),
          bare_datagram(PacketType::alive),
          size_datagram()};
}

// Makes all checks that a receiver makes before it believes a datagram.
inline Refusal decode(ByteSpan datagram, const Expectation* expect = &kExpectation) {
  Prefix prefix;
  if (const Refusal refusal = decode_prefix(datagram, expect, prefix); refusal != Refusal::none)
    return refusal;
  ByteSpan rest;
  DataHeader data;
  Report report;
  End end;
  Repair repair;
  Size size;
  Piece piece;
  switch (prefix.type) {
    case PacketType::data:
      return decode_data(datagram, data, rest);
    case PacketType::report:
      return decode_report(datagram, report);
    case PacketType::end:
      return decode_end(datagram, end);
    case PacketType::repair:
      return decode_repair(datagram, repair, rest);
    case PacketType::probe:
    case PacketType::goodbye:
    case PacketType::given_up:
    case PacketType::alive:
      return Refusal::none;
    case PacketType::size:
      return decode_size(datagram, size);
    case PacketType::piece:
      return decode_piece(datagram, piece, rest);
  }
  return Refusal::type;
}

// Corrects the checksum of a changed datagram, so that later checks are reached.
inline void reseal(Datagram& datagram) {
  const std::size_t header =
      static_cast<std::uint8_t>(datagram[3]) == 1 ? kDataHeaderBytes : datagram.size();
  const ByteSpan all(datagram);
  std::uint32_t crc = crc32c(all.subspan(header));
  crc = crc32c(all.first(4), crc);
  crc = crc32c(all.subspan(8, header - 8), crc);
  std::memcpy(datagram.data() + 4, &crc, sizeof(crc));
}

}  // namespace leeway::wire::testing
