// Decoding must give what was encoded, at the offsets of the specification.
#include "wire/packet.h"

#include <gtest/gtest.h>

#include <set>

#include "sample_datagrams.h"

namespace leeway::wire {
namespace {

using namespace testing;

template <typename T>
T at(const Datagram& datagram, std::size_t offset) {
  T value;
  std::memcpy(&value, datagram.data() + offset, sizeof(T));
  return value;
}

TEST(PacketPrefix, SurvivesTheRoundTripInEveryType) {
  for (const Datagram& datagram : one_of_each()) {
    Prefix prefix;
    ASSERT_EQ(decode_prefix(datagram, &kExpectation, prefix), Refusal::none);
    EXPECT_EQ(prefix.epoch, kExpectation.epoch);
    EXPECT_EQ(prefix.source, 1);
    EXPECT_EQ(prefix.destination, 3);
    EXPECT_EQ(prefix.sequence, 0x01020304u);
    EXPECT_EQ(static_cast<std::uint8_t>(prefix.type), static_cast<std::uint8_t>(datagram[3]));
  }
}

TEST(PacketPrefix, FieldsLieWhereWireOneSays) {
  const Datagram datagram = bare_datagram(PacketType::probe);
  EXPECT_EQ(datagram.size(), 20u);
  EXPECT_EQ(datagram[0], std::byte{'L'});
  EXPECT_EQ(datagram[1], std::byte{'W'});
  EXPECT_EQ(at<std::uint8_t>(datagram, 2), kVersion);
  EXPECT_EQ(at<std::uint8_t>(datagram, 3), 3);
  EXPECT_EQ(at<std::uint32_t>(datagram, 8), 0xCAFE1234u);
  EXPECT_EQ(at<std::uint16_t>(datagram, 12), 1);
  EXPECT_EQ(at<std::uint16_t>(datagram, 14), 3);
  EXPECT_EQ(datagram[16], std::byte{0x04}) << "little-endian";
}

TEST(PacketPrefix, ChecksumIsThatOfPayloadThenHeaderWithoutIt) {
  const Datagram datagram = data_datagram();
  const ByteSpan all(datagram);
  std::uint32_t crc = crc32c(all.subspan(kDataHeaderBytes));
  crc = crc32c(all.subspan(8, kDataHeaderBytes - 8), crc32c(all.first(4), crc));
  EXPECT_EQ(at<std::uint32_t>(datagram, 4), crc);
}

TEST(PacketData, SurvivesTheRoundTrip) {
  for (const std::size_t payload_bytes : {0, 1, 1408}) {
    const Datagram datagram = data_datagram(data_header(), payload_bytes);
    DataHeader out;
    ByteSpan payload;
    ASSERT_EQ(decode(datagram), Refusal::none);
    ASSERT_EQ(decode_data(datagram, out, payload), Refusal::none);
    const DataHeader in = data_header();
    EXPECT_EQ(out.round, in.round);
    EXPECT_EQ(out.kind, in.kind);
    EXPECT_EQ(out.codec, in.codec);
    EXPECT_EQ(out.attempt, in.attempt);
    EXPECT_EQ(out.index, in.index);
    EXPECT_EQ(out.position, in.position);
    EXPECT_EQ(out.flow_packets, in.flow_packets);
    EXPECT_EQ(out.tail, in.tail);
    EXPECT_EQ(out.opened_below, in.opened_below);
    EXPECT_EQ(out.settled_below, in.settled_below);
    EXPECT_EQ(out.tag_digest, in.tag_digest);
    EXPECT_EQ(payload.size(), payload_bytes);
    EXPECT_EQ(payload.data(), datagram.data() + kDataHeaderBytes) << "payload aliases the datagram";
  }
}

TEST(PacketData, FieldsLieWhereWireTwoSays) {
  const Datagram datagram = data_datagram();
  EXPECT_EQ(kDataHeaderBytes, 56u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 20), 70001u);
  EXPECT_EQ(at<std::uint8_t>(datagram, 24), 1);
  EXPECT_EQ(at<std::uint8_t>(datagram, 25), 3);
  EXPECT_EQ(at<std::uint16_t>(datagram, 26), 2);
  EXPECT_EQ(at<std::uint32_t>(datagram, 28), 17u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 32), 5u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 36), 20u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 40), 301u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 44), 70003u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 48), 70000u);
  EXPECT_EQ(at<std::uint32_t>(datagram, 52), 0xABCD0123u);
}

TEST(PacketData, OfTheReduceHalfHasAWeight) {
  DataHeader header = data_header();
  header.kind = FlowKind::reduce;
  header.weight = 2.5f;
  const Datagram datagram = data_datagram(header);
  DataHeader out;
  ByteSpan payload;
  ASSERT_EQ(decode_data(datagram, out, payload), Refusal::none);
  EXPECT_EQ(out.weight, 2.5f);
  EXPECT_EQ(out.tail, 0u);
  EXPECT_EQ(at<float>(datagram, 40), 2.5f);
}

// Only the last datagram of a pass over a message carries the position; else it is decoded as 0.
TEST(PacketData, OfAMessageHasATagAndALength) {
  for (const std::uint32_t position : {5u, 19u}) {
    DataHeader header = data_header();
    header.kind = FlowKind::point;
    header.position = {position};
    header.message_tag = 0xFEDC0001;
    const Datagram datagram = data_datagram(header);
    DataHeader out;
    ByteSpan payload;
    ASSERT_EQ(decode_data(datagram, out, payload), Refusal::none);
    EXPECT_EQ(out.message_tag, 0xFEDC0001u);
    EXPECT_EQ(out.tail, 301u);
    EXPECT_EQ(out.position.value, position == 19 ? 19u : 0u);
    EXPECT_EQ(at<std::uint32_t>(datagram, 32), position == 19 ? 0x80000000u | 301u : 301u);
    EXPECT_EQ(at<std::uint32_t>(datagram, 40), 0xFEDC0001u);
  }
}

DataHeader parity_header(std::uint32_t number, std::uint32_t packets = 20) {
  DataHeader header = data_header();
  header.attempt = 0;
  header.flow_packets = packets;
  header.index = {packets + number};
  header.position = {packets + number};
  header.goes_on = true;
  return header;
}

TEST(PacketData, OfParityHasAPlaceBehindItsFlowsPackets) {
  for (const bool goes_on : {false, true}) {
    DataHeader header = parity_header(3);
    header.goes_on = goes_on;
    const Datagram datagram = data_datagram(header);
    DataHeader out;
    ByteSpan payload;
    ASSERT_EQ(decode_data(datagram, out, payload), Refusal::none);
    EXPECT_TRUE(out.is_parity());
    EXPECT_EQ(out.index.value, 23u);
    EXPECT_EQ(out.goes_on, goes_on);
    EXPECT_EQ(out.ends_first_pass(), !goes_on);
    EXPECT_EQ(at<std::uint8_t>(datagram, 24), goes_on ? 0x81 : 1);
  }
}

TEST(PacketData, TheLastPacketSaysWhetherParityFollows) {
  DataHeader header = data_header();
  header.attempt = 0;
  header.position = {19};
  EXPECT_TRUE(header.ends_first_pass());
  EXPECT_FALSE(header.is_parity());
  header.goes_on = true;
  EXPECT_FALSE(header.ends_first_pass());
  DataHeader out;
  ByteSpan payload;
  ASSERT_EQ(decode_data(data_datagram(header), out, payload), Refusal::none);
  EXPECT_TRUE(out.goes_on);
}

TEST(PacketData, ParityWithoutAPlaceIsRefused) {
  const auto refusal = [](const DataHeader& header) {
    DataHeader out;
    ByteSpan payload;
    return decode_data(data_datagram(header), out, payload);
  };
  EXPECT_EQ(refusal(parity_header(limits::kCodeParitiesMax - 1)), Refusal::none);
  EXPECT_EQ(refusal(parity_header(limits::kCodeParitiesMax)), Refusal::field);
  EXPECT_EQ(refusal(parity_header(2 * limits::kCodeParitiesMax - 1, limits::kCodePackets + 1)),
            Refusal::none)
      << "two codes";
  EXPECT_EQ(refusal(parity_header(0, 0)), Refusal::field);
  DataHeader header = parity_header(0);
  header.attempt = 1;
  EXPECT_EQ(refusal(header), Refusal::field) << "only the first pass has any";
  header = parity_header(0);
  header.kind = FlowKind::reduce;
  EXPECT_EQ(refusal(header), Refusal::none);
  header.kind = FlowKind::point;
  EXPECT_EQ(refusal(header), Refusal::field) << "messages have none";
  header.goes_on = false;
  EXPECT_EQ(refusal(header), Refusal::field);
  header = parity_header(0);
  header.position = {19};
  EXPECT_EQ(refusal(header), Refusal::field);
  header = data_header();
  header.attempt = 0;
  header.goes_on = true;
  EXPECT_EQ(refusal(header), Refusal::field) << "not the last packet";
}

// A failed collective's entry tells the reason and, for a mismatch, what the other rank means (WIRE
// 3.1).
TEST(PacketReport, FailedCollectivesSurviveTheRoundTrip) {
  for (auto code = StatusCode::kInvalidArgument; code <= StatusCode::kInternal;
       code = static_cast<StatusCode>(static_cast<int>(code) + 1)) {
    const bool mismatch = code == StatusCode::kMismatch;
    Report in = report(3);
    in.open[0].failure = code;
    in.open[0].about = 0x1234;
    const bool told = code == StatusCode::kDeadlineExceeded;
    if (told) in.open[0].first = 7;
    in.open[0].other = tag();
    in.open[0].other.count = 7;
    const Datagram datagram = report_datagram(in);
    EXPECT_EQ(datagram.size(), report_bytes(in));
    EXPECT_EQ(datagram.size() - report_datagram(report(3)).size(), mismatch ? 26u : told ? 5u : 3u);
    Report out;
    ASSERT_EQ(decode_report(datagram, out), Refusal::none);
    EXPECT_EQ(out.open[0].failure, code);
    EXPECT_EQ(out.open[0].about, 0x1234);
    EXPECT_EQ(out.open[0].first, in.open[0].first);
    EXPECT_EQ(out.open[0].tag, in.open[0].tag);
    EXPECT_EQ(out.open[0].other, mismatch ? in.open[0].other : OperationTag{});
    EXPECT_FALSE(out.open[2].failed());
    EXPECT_EQ(out.open[2].tag, in.open[2].tag);
  }
}

// Required by WIRE 3.17.
TEST(PacketReport, AMessageThatIsGivenUpSurvivesTheRoundTrip) {
  Report in;
  in.open_count = 1;
  in.open[0] = {.round = 5,
                .point_to_point = true,
                .sending = true,
                .message_tag = 9,
                .failure = StatusCode::kDeadlineExceeded};
  Report out;
  const Datagram datagram = report_datagram(in);
  EXPECT_EQ(datagram.size(), report_bytes(in));
  ASSERT_EQ(decode_report(datagram, out), Refusal::none);
  EXPECT_EQ(out.open[0].failure, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(out.open[0].message_tag, 9u);
  in.open[0].sending = false;
  EXPECT_EQ(decode_report(report_datagram(in), out), Refusal::field) << "only sends are given up";
}

TEST(PacketReport, SurvivesTheRoundTripWithAnyNumberOfOpenRounds) {
  for (std::uint32_t open = 0; open <= limits::kOpenRoundsMax; ++open) {
    const Report in = report(open);
    Report out;
    const Datagram datagram = report_datagram(in);
    EXPECT_EQ(datagram.size(), report_bytes(in));
    EXPECT_EQ(datagram.size(), kReportFixedBytes + kReportMarksBytes +
                                   (open + 1) / 2 * kOpenRoundBytes + open / 2 * kOpenMessageBytes +
                                   2 * kOpenedStreamBytes);
    ASSERT_EQ(decode_report(datagram, out), Refusal::none);
    EXPECT_EQ(out.largest_sequence, in.largest_sequence);
    EXPECT_EQ(out.received, in.received);
    EXPECT_EQ(out.delay_us, in.delay_us);
    EXPECT_EQ(out.received_bytes, in.received_bytes);
    EXPECT_EQ(out.arrived_us, in.arrived_us);
    EXPECT_EQ(at<std::uint32_t>(datagram, 48) >> 8, in.arrived_us);
    EXPECT_EQ(at<std::uint32_t>(datagram, 52), in.received_bytes);
    EXPECT_EQ(out.ect, in.ect);
    EXPECT_EQ(out.ce, in.ce);
    EXPECT_EQ(at<std::uint32_t>(datagram, 56), in.ect);
    EXPECT_EQ(at<std::uint32_t>(datagram, 60), in.ce);
    EXPECT_EQ(out.opened_below, in.opened_below);
    EXPECT_EQ(out.point_opened_below, in.point_opened_below);
    EXPECT_EQ(out.group_largest, in.group_largest);
    EXPECT_EQ(at<std::uint32_t>(datagram, 40), in.group_largest);
    ASSERT_EQ(out.open_count, open);
    EXPECT_EQ(out.missed, in.missed);
    EXPECT_EQ(static_cast<std::uint8_t>(datagram[44]), open);   // WIRE 3.1
    EXPECT_EQ(static_cast<std::uint8_t>(datagram[45]), 0x05u);  // WIRE 3.9
    EXPECT_EQ(static_cast<std::uint8_t>(datagram[47]), 0x80u);
    for (std::uint32_t i = 0; i < open; ++i) {
      EXPECT_EQ(out.open[i].round, in.open[i].round);
      EXPECT_EQ(out.open[i].point_to_point, in.open[i].point_to_point);
      EXPECT_EQ(out.open[i].sending, in.open[i].sending);
      EXPECT_EQ(out.open[i].reduce_settled, in.open[i].reduce_settled);
      EXPECT_EQ(out.open[i].spread_settled, in.open[i].spread_settled);
      EXPECT_EQ(out.open[i].message_tag, in.open[i].message_tag);
      EXPECT_EQ(out.open[i].tag, in.open[i].tag);
    }
    ASSERT_EQ(out.stream_count, 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(out.streams[i].tag, in.streams[i].tag);
      EXPECT_EQ(out.streams[i].opened_below, in.streams[i].opened_below);
    }
  }
}

TEST(PacketReport, TellsOfTheLatestCollectivesWhichContributionWasMissed) {  // WIRE 3.9
  Report report{.opened_below = 30, .missed = 0x800005};
  EXPECT_TRUE(report.missed_round(29));
  EXPECT_FALSE(report.missed_round(28));
  EXPECT_TRUE(report.missed_round(27));
  EXPECT_TRUE(report.missed_round(6));
  EXPECT_FALSE(report.missed_round(5)) << "too long ago to tell";
  EXPECT_FALSE(report.missed_round(30)) << "not opened there";
  report.opened_below = 1;  // numbers wrap
  EXPECT_TRUE(report.missed_round(0));
  EXPECT_TRUE(report.missed_round(UINT32_MAX - 1));
}

TEST(PacketReport, IsSilentOfMarksWhereThereAreNone) {
  Report in = report(3);
  const std::size_t with = report_datagram(in).size();
  in.ect = in.ce = 0;
  const Datagram datagram = report_datagram(in);
  EXPECT_EQ(datagram.size() + kReportMarksBytes, with);
  Report out = report(1);
  ASSERT_EQ(decode_report(datagram, out), Refusal::none);
  EXPECT_EQ(out.ect | out.ce, 0u);
  EXPECT_EQ(out.stream_count, in.stream_count);
}

TEST(PacketReport, TellsOfItsHostOnlyWhereThatDropped) {  // WIRE 3.16
  Report in = report(3);
  const std::size_t without = report_datagram(in).size();
  in.grant = 0x31323334;
  in.host_drops = 0x4142;
  for (const bool marks : {true, false}) {
    if (!marks) in.ect = in.ce = 0;
    const Datagram datagram = report_datagram(in);
    EXPECT_EQ(datagram.size(), report_bytes(in));
    EXPECT_EQ(datagram.size(), without + kReportHostBytes - (marks ? 0 : kReportMarksBytes));
    EXPECT_EQ(at<std::uint32_t>(datagram, marks ? 64 : 56), in.grant);
    EXPECT_EQ(at<std::uint16_t>(datagram, marks ? 68 : 60), in.host_drops);
    Report out;
    ASSERT_EQ(decode_report(datagram, out), Refusal::none);
    EXPECT_EQ(out.grant, in.grant);
    EXPECT_EQ(out.host_drops, in.host_drops);
    EXPECT_EQ(out.stream_count, in.stream_count);
  }
  Report out = in;
  ASSERT_EQ(decode_report(report_datagram(report(3)), out), Refusal::none);
  EXPECT_EQ(out.grant, kNoGrant);
  EXPECT_EQ(out.host_drops, 0u);
}

// Both reports have the maximum number of entries. The first has only collectives and no marks. The
// second has marks and host drops, and limits::kOpenCollectivesMax collectives, more than which
// cannot be open.
TEST(PacketReport, FitsTheSmallestDatagramWhenFull) {
  Report full = report(limits::kOpenRoundsMax);
  for (OpenRound& entry : full.open) entry.point_to_point = false;
  full.stream_count = 1;  // more streams fit if there are fewer entries
  full.ect = full.ce = 0;
  EXPECT_LE(report_datagram(full).size(), limits::kDatagramBytesMin);
  full.ect = full.ce = full.grant = full.host_drops = 1;
  for (int i = limits::kOpenCollectivesMax; i < limits::kOpenRoundsMax; ++i)
    full.open[i].point_to_point = true;
  EXPECT_LE(report_datagram(full).size(), limits::kDatagramBytesMin);
}

TEST(PacketEnd, SurvivesTheRoundTrip) {
  End out;
  const Datagram datagram = end_datagram();
  ASSERT_EQ(decode_end(datagram, out), Refusal::none);
  EXPECT_EQ(datagram.size(), kEndBytes);
  EXPECT_EQ(out.round, 9u);
  EXPECT_EQ(out.kind, FlowKind::point);
  EXPECT_EQ(out.attempt, 4);
  EXPECT_EQ(out.flow_packets, 77u);
  EXPECT_EQ(out.tail, 33u);
  EXPECT_EQ(out.message_tag, 0x70000002u);
  const Datagram collective = end_datagram(
      {.round = 9, .kind = FlowKind::spread, .flow_packets = 77, .tail = 5, .tag_digest = 0xABCD});
  ASSERT_EQ(decode_end(collective, out), Refusal::none);
  EXPECT_EQ(collective.size(), kEndBytes);
  EXPECT_EQ(out.tail, 5u);
  EXPECT_EQ(out.tag_digest, 0xABCDu);
}

TEST(PacketRepair, SurvivesTheRoundTrip) {
  Repair out;
  ByteSpan words;
  const Datagram datagram = repair_datagram();
  ASSERT_EQ(decode_repair(datagram, out, words), Refusal::none);
  EXPECT_EQ(out.round, 9u);
  EXPECT_EQ(out.kind, FlowKind::reduce);
  EXPECT_EQ(out.attempt, 3);
  EXPECT_EQ(out.base, 128u);
  EXPECT_EQ(out.words, 3u);
  EXPECT_EQ(out.message_tag, 3u);
  EXPECT_FALSE(out.last);
  const std::vector<std::uint64_t> expected = {1, 0, ~std::uint64_t{0}};
  ASSERT_EQ(words.size(), 24u);
  EXPECT_EQ(std::memcmp(words.data(), expected.data(), 24), 0);
}

TEST(OperationTagDigest, ChangesWithEveryField) {
  std::set<std::uint32_t> digests;
  const auto add = [&](auto change) {
    OperationTag changed = tag();
    change(changed);
    digests.insert(digest(changed, false));
  };
  add([](OperationTag&) {});
  add([](OperationTag& t) { t.operation = OperationKind::gather; });
  add([](OperationTag& t) { t.dtype = DataType::f32; });
  add([](OperationTag& t) { t.reduce_op = ReduceOp::max; });
  add([](OperationTag& t) { t.codec = Codec::native; });
  add([](OperationTag& t) { t.spread_codec = Codec::native; });
  add([](OperationTag& t) { t.delivery = Delivery::Kind::exact; });
  add([](OperationTag& t) { t.spread = Delivery::Kind::best_effort; });
  add([](OperationTag& t) { t.estimator = Estimator::ratio; });
  add([](OperationTag& t) { --t.root; });
  add([](OperationTag& t) { ++t.codec_settings; });
  add([](OperationTag& t) { ++t.spread_settings; });
  add([](OperationTag& t) { ++t.count; });
  add([](OperationTag& t) { ++t.shape; });
  EXPECT_EQ(digests.size(), 14u);
}

TEST(OperationTagDigest, IsTheSameOnBothSidesOfAMessage) {
  OperationTag other = tag();
  other.operation = OperationKind::gather;
  EXPECT_EQ(digest(tag(), true), digest(other, true));
  ++other.count;  // the count, which is the sender's to choose
  EXPECT_EQ(digest(tag(), true), digest(other, true));
  other.dtype = DataType::i8;
  EXPECT_NE(digest(tag(), true), digest(other, true));
}

}  // namespace
}  // namespace leeway::wire
