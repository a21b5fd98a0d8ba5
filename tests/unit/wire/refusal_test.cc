// For any bytes, decoding must give their meaning or the reason for refusal.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/philox.h"
#include "sample_datagrams.h"

namespace leeway::wire {
namespace {

using namespace testing;

TEST(RefusalTruncated, EveryLengthBelowTheWholeIsRefused) {
  for (const Datagram& datagram : one_of_each()) {
    for (std::size_t length = 0; length < datagram.size(); ++length) {
      // The copy has exactly that length, so that a sanitizer sees any read beyond it.
      const Datagram cut(datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(decode(cut), Refusal::none)
          << "type " << static_cast<int>(datagram[3]) << ", " << length << " bytes";
    }
  }
}

TEST(RefusalTruncated, EveryLengthIsRefusedEvenWithAFittingChecksum) {
  for (const Datagram& datagram : one_of_each()) {
    // Data may have any payload length; the plan of the call decides about it, not the decoder.
    if (datagram[3] == std::byte{1}) continue;
    for (std::size_t length = kPrefixBytes; length < datagram.size(); ++length) {
      Datagram cut(datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(length));
      reseal(cut);
      EXPECT_EQ(decode(cut), Refusal::truncated)
          << "type " << static_cast<int>(datagram[3]) << ", " << length;
    }
  }
}

TEST(RefusalTruncated, TrailingBytesAreRefusedEvenWithAFittingChecksum) {
  for (Datagram datagram : one_of_each()) {
    // Data may have any payload length; the plan of the call decides about it, not the decoder.
    if (datagram[3] == std::byte{1}) continue;
    datagram.push_back(std::byte{0});
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::truncated) << "type " << static_cast<int>(datagram[3]);
  }
}

TEST(RefusalChecksum, EverySingleBitFlipIsRefused) {
  for (const Datagram& datagram : one_of_each()) {
    for (std::size_t bit = 0; bit < datagram.size() * 8; ++bit) {
      Datagram flipped = datagram;
      flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      ASSERT_NE(decode(flipped), Refusal::none)
          << "type " << static_cast<int>(datagram[3]) << ", bit " << bit;
    }
  }
}

TEST(RefusalChecksum, FlipsOfThePayloadAreThatAndNothingElse) {
  const Datagram datagram = data_datagram();
  for (std::size_t bit = kDataHeaderBytes * 8; bit < datagram.size() * 8; ++bit) {
    Datagram flipped = datagram;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_EQ(decode(flipped), Refusal::checksum);
  }
}

TEST(RefusalPrefix, NamesWhatIsWrong) {
  const auto changed = [](std::size_t offset, std::uint8_t value) {
    Datagram datagram = end_datagram();
    datagram[offset] = std::byte{value};
    reseal(datagram);
    return decode(datagram);
  };
  EXPECT_EQ(changed(0, 'l'), Refusal::magic);
  EXPECT_EQ(changed(2, kVersion + 1), Refusal::version);
  EXPECT_EQ(changed(2, 0), Refusal::version);
  EXPECT_EQ(changed(3, 0), Refusal::type);
  EXPECT_EQ(changed(3, 11), Refusal::type);
  EXPECT_EQ(changed(3, 255), Refusal::type);
  EXPECT_EQ(changed(8, 0), Refusal::epoch);
  EXPECT_EQ(changed(12, 5), Refusal::misrouted) << "source outside the group";
  EXPECT_EQ(changed(12, 3), Refusal::misrouted) << "source is the receiver itself";
  EXPECT_EQ(changed(13, 255), Refusal::misrouted);
  EXPECT_EQ(changed(14, 2), Refusal::misrouted) << "meant for another rank";
}

// Required by WIRE 1.2.
TEST(RefusalPrefix, OnlyDataMayLeaveItsPayloadOutOfTheChecksum) {
  for (Datagram datagram : one_of_each()) {
    datagram[3] |= std::byte{0x80};
    const bool data = static_cast<PacketType>(datagram[3] & std::byte{0x7F}) == PacketType::data;
    EXPECT_EQ(decode(datagram), data ? Refusal::checksum : Refusal::type)
        << "the flag itself is covered";
  }
}

TEST(RefusalPrefix, OnlyDataAsksForAReport) {
  for (Datagram datagram : one_of_each()) {
    datagram[3] |= std::byte{0x40};
    const bool data = static_cast<PacketType>(datagram[3] & std::byte{0x3F}) == PacketType::data;
    EXPECT_EQ(decode(datagram), data ? Refusal::checksum : Refusal::type);
  }
}

TEST(RefusalPrefix, AQuestionSurvivesTheRoundTrip) {
  Prefix prefix = prefix_of(PacketType::data);
  prefix.asks = true;
  Prefix read;
  ASSERT_EQ(decode_prefix(data_datagram(data_header(), 40, prefix), nullptr, read), Refusal::none);
  EXPECT_TRUE(read.asks);
  EXPECT_TRUE(read.payload_summed);
}

TEST(RefusalPrefix, APayloadLeftOutMayChangeAndItsHeaderMayNot) {
  Prefix prefix = prefix_of(PacketType::data);
  prefix.payload_summed = false;
  const Datagram sent = data_datagram(data_header(), 40, prefix);
  Prefix read;
  ASSERT_EQ(decode_prefix(sent, nullptr, read), Refusal::none);
  EXPECT_EQ(read.type, PacketType::data);
  EXPECT_FALSE(read.payload_summed);
  for (std::size_t at = 0; at < sent.size(); ++at) {
    Datagram changed = sent;
    changed[at] ^= std::byte{1};
    EXPECT_EQ(decode(changed) == Refusal::none, at >= kDataHeaderBytes) << "byte " << at;
  }
}

// Only data and probes may be multicast (WIRE 1.5).
TEST(RefusalPrefix, DataAndProbesMayBeForEveryRankAndNothingElse) {
  for (Datagram datagram : one_of_each()) {
    datagram[14] = std::byte{0xFE};
    datagram[15] = std::byte{0xFF};
    reseal(datagram);
    const auto type = static_cast<PacketType>(datagram[3]);
    const bool may = type == PacketType::data || type == PacketType::probe;
    EXPECT_EQ(decode(datagram), may ? Refusal::none : Refusal::misrouted)
        << "type " << static_cast<int>(type);
    datagram[14] = std::byte{0xFF};  // no rank
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::misrouted) << "type " << static_cast<int>(type);
  }
}

TEST(RefusalPrefix, WithoutAnExpectationRoutingIsNotChecked) {
  EXPECT_EQ(decode(end_datagram(), nullptr), Refusal::none);
  const Expectation other{.epoch = 1, .self = 0, .size = 2};
  EXPECT_EQ(decode(end_datagram(), &other), Refusal::epoch);
}

TEST(RefusalOversized, AByteMoreThanTheLargestIsRefused) {
  EXPECT_EQ(decode(data_datagram(data_header(), limits::kDatagramBytesMax - kDataHeaderBytes)),
            Refusal::none);
  EXPECT_EQ(decode(data_datagram(data_header(), limits::kDatagramBytesMax - kDataHeaderBytes + 1)),
            Refusal::oversized);
  EXPECT_EQ(decode(Datagram(65535)), Refusal::oversized);
}

TEST(RefusalData, FieldsOutsideTheirRangeAreRefused) {
  const auto refusal = [](auto change) {
    DataHeader header = data_header();
    change(header);
    return decode(data_datagram(header));
  };
  EXPECT_EQ(refusal([](DataHeader&) {}), Refusal::none);
  EXPECT_EQ(refusal([](DataHeader& h) { h.kind = static_cast<FlowKind>(3); }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.kind = static_cast<FlowKind>(255); }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.codec = Codec::sparse; }), Refusal::none);
  EXPECT_EQ(refusal([](DataHeader& h) { h.codec = Codec::automatic; }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.index = {h.flow_packets - 1}; }), Refusal::none);
  EXPECT_EQ(refusal([](DataHeader& h) { h.index = {h.flow_packets}; }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.index = {UINT32_MAX}; }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.position = {h.flow_packets}; }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.flow_packets = 0; }), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) { h.flow_packets = limits::kFlowPacketsMax; }),
            Refusal::none);
  EXPECT_EQ(refusal([](DataHeader& h) { h.flow_packets = limits::kFlowPacketsMax + 1; }),
            Refusal::field);
  const auto of_weight = [&](float weight) {
    return refusal([&](DataHeader& h) {
      h.kind = FlowKind::reduce;
      h.weight = weight;
    });
  };
  EXPECT_EQ(of_weight(0.0f), Refusal::none);
  EXPECT_EQ(of_weight(-1.0f), Refusal::field);
  EXPECT_EQ(of_weight(std::nanf("")), Refusal::field);
  EXPECT_EQ(of_weight(std::numeric_limits<float>::infinity()), Refusal::field);
  EXPECT_EQ(refusal([](DataHeader& h) {
              h.kind = FlowKind::point;
              h.index = {0};
              h.flow_packets = 0;
            }),
            Refusal::field);
}

TEST(RefusalEnd, FieldsOutsideTheirRangeAreRefused) {
  EXPECT_EQ(decode(end_datagram({.kind = static_cast<FlowKind>(3)})), Refusal::field);
  EXPECT_EQ(decode(end_datagram({.weight = -0.5f})), Refusal::field);
  EXPECT_EQ(decode(end_datagram({.kind = FlowKind::spread, .tail = UINT32_MAX})), Refusal::none);
  EXPECT_EQ(decode(end_datagram({.weight = std::nanf("")})), Refusal::field);
}

constexpr std::size_t kOpenCountAt = 44;
constexpr std::size_t kStreamCountAt = 48;
constexpr int kTellsMarks = 0x80;  // a flag in the same byte

TEST(RefusalReport, MoreStreamsThanAllowedAreRefusedBeforeTheyAreRead) {
  for (const int count : {limits::kReportedStreamsMax + 1, 255}) {
    Datagram datagram = report_datagram();
    datagram[kStreamCountAt] = static_cast<std::byte>(count);
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::field);
  }
  for (const int count : {0, 1, 3}) {
    Datagram datagram = report_datagram();
    datagram[kStreamCountAt] = static_cast<std::byte>(count | kTellsMarks);
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::truncated);
  }
}

TEST(RefusalReport, MoreOpenRoundsThanAllowedAreRefusedBeforeTheyAreRead) {
  for (const std::uint32_t count : {std::uint32_t{limits::kOpenRoundsMax} + 1, 1000u, UINT32_MAX}) {
    Datagram datagram = report_datagram();
    std::memcpy(datagram.data() + kOpenCountAt, &count, sizeof(count));
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::field);
  }
}

TEST(RefusalReport, CountThatContradictsTheLengthIsRefused) {
  for (const std::uint32_t count : {0u, 2u, 4u}) {
    Datagram datagram = report_datagram(report(3));
    std::memcpy(datagram.data() + kOpenCountAt, &count, sizeof(count));
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::truncated);
  }
}

// Required by WIRE 3.1.
TEST(RefusalReport, ValuesWithoutANameAreRefused) {
  const auto refusal = [](std::size_t at, int value) {
    Datagram datagram = report_datagram(report(3));
    datagram[kReportFixedBytes + kReportMarksBytes + kOpenRoundBytes + kOpenMessageBytes + at] =
        static_cast<std::byte>(value);
    reseal(datagram);
    return decode(datagram);
  };
  struct Field {
    std::size_t at;
    int last;
  };
  for (const Field field :
       {Field{5, static_cast<int>(OperationKind::split)}, Field{7, 17}, Field{8, 17}}) {
    EXPECT_EQ(refusal(field.at, field.last), Refusal::none) << field.at;
    EXPECT_EQ(refusal(field.at, field.last + 1), Refusal::field) << field.at;
    EXPECT_EQ(refusal(field.at, 255), Refusal::field) << field.at;
  }
  const int dtype = static_cast<int>(DataType::boolean);
  const int op = static_cast<int>(ReduceOp::bxor);
  EXPECT_EQ(refusal(6, op << 4 | dtype), Refusal::none);
  EXPECT_EQ(refusal(6, op << 4 | (dtype + 1)), Refusal::field);
  EXPECT_EQ(refusal(6, (op + 1) << 4 | dtype), Refusal::field);
  EXPECT_EQ(refusal(9, 5 << 4 | 2 << 2 | 2), Refusal::none);
  EXPECT_EQ(refusal(9, 5 << 4 | 2 << 2 | 3), Refusal::field);
  EXPECT_EQ(refusal(9, 5 << 4 | 3 << 2 | 2), Refusal::field);
  EXPECT_EQ(refusal(9, 6 << 4 | 2 << 2 | 2), Refusal::field);
}

TEST(RefusalReport, FailuresWithoutANameAreRefused) {  // WIRE 3.1
  Report failed = report(1);
  failed.open[0].failure = StatusCode::kMismatch;
  const auto refusal = [&](std::size_t at, int value) {
    Datagram datagram = report_datagram(failed);
    datagram[kReportFixedBytes + kReportMarksBytes + at] = static_cast<std::byte>(value);
    reseal(datagram);
    return decode(datagram);
  };
  EXPECT_EQ(refusal(28, static_cast<int>(StatusCode::kMismatch)), Refusal::none);
  EXPECT_EQ(refusal(28, 0), Refusal::truncated) << "and so without the other's tag";
  EXPECT_EQ(refusal(28, 10), Refusal::truncated);
  EXPECT_EQ(refusal(31, static_cast<int>(OperationKind::split) + 1), Refusal::field);
  failed.open[0].failure = StatusCode::kInternal;
  EXPECT_EQ(refusal(28, 9), Refusal::none);
  EXPECT_EQ(refusal(28, 0), Refusal::field);
  EXPECT_EQ(refusal(28, 10), Refusal::field);
}

TEST(RefusalRepair, FieldsOutsideTheirRangeAreRefused) {
  const auto refusal = [](std::size_t offset, std::uint32_t value) {
    Datagram datagram = repair_datagram();
    std::memcpy(datagram.data() + offset, &value, sizeof(value));
    reseal(datagram);
    return decode(datagram);
  };
  constexpr std::size_t kBase = kPrefixBytes + 8;
  constexpr std::size_t kWords = kPrefixBytes + 12;
  EXPECT_EQ(refusal(kBase, 64), Refusal::none);
  EXPECT_EQ(refusal(kBase, 65), Refusal::field);
  EXPECT_EQ(refusal(kBase, limits::kFlowPacketsMax), Refusal::field);
  EXPECT_EQ(refusal(kBase, UINT32_MAX - 63), Refusal::field);
  EXPECT_EQ(refusal(kWords, 2), Refusal::truncated);
  EXPECT_EQ(refusal(kWords, 4), Refusal::truncated);
  EXPECT_EQ(refusal(kWords, 0x20000003), Refusal::truncated)
      << "a count whose bytes overflow 32 bits";
  EXPECT_EQ(decode(repair_datagram({1}, {.attempt = 0, .base = 0})), Refusal::field)
      << "request 0 is no request";
}

// Tries random bytes, and valid datagrams with random changes and fitting checksums. Decoding must
// not crash, read beyond the datagram (sanitizers), or accept a field outside its range.
TEST(RefusalFuzz, RandomBytesNeverCrash) {
  constexpr std::uint32_t kRuns = 100000;
  const auto originals = one_of_each();
  std::array<std::uint64_t, kRefusals> outcomes{};
  for (std::uint32_t run = 0; run < kRuns; ++run) {
    const std::uint64_t draw = keyed_hash(1, run, 0, 0, 0);
    Datagram datagram;
    if (run % 4 == 0) {
      datagram.resize(draw % 200);
      for (std::size_t i = 0; i < datagram.size(); ++i)
        datagram[i] = static_cast<std::byte>(keyed_hash(2, run, 0, 0, i));
    } else {
      datagram = originals[draw % originals.size()];
      if (run % 4 == 3) datagram.resize(kPrefixBytes + draw / 8 % 100);
      for (std::uint32_t change = 0; change < 1 + draw % 5; ++change) {
        const std::uint64_t where = keyed_hash(3, run, 0, change, 0);
        datagram[where % datagram.size()] = static_cast<std::byte>(where >> 32);
      }
    }
    if (datagram.size() >= kDataHeaderBytes && run % 2 == 1) reseal(datagram);
    ++outcomes[static_cast<int>(decode(datagram))];
  }
  EXPECT_GT(outcomes[static_cast<int>(Refusal::none)], kRuns / 100)
      << "the fuzz reaches what lies behind the checksum";
  EXPECT_GT(outcomes[static_cast<int>(Refusal::field)], kRuns / 100);
  EXPECT_GT(outcomes[static_cast<int>(Refusal::truncated)], kRuns / 100);
}

TEST(DecodeSize, AProbeIsAsLongAsItSaysAndAnAnswerIsShort) {  // WIRE 10.2
  Datagram datagram = size_datagram();
  ASSERT_EQ(decode(datagram), Refusal::none);
  datagram.resize(datagram.size() - 1);
  reseal(datagram);
  EXPECT_EQ(decode(datagram), Refusal::truncated);
  for (const auto role : {Size::Role::answer, Size::Role::mine, Size::Role::yours}) {
    datagram.resize(kSizeBytes);
    EXPECT_EQ(encode_size(prefix_of(PacketType::size), {.role = role, .bytes = 1472}, datagram),
              kSizeBytes);
    EXPECT_EQ(decode(datagram), Refusal::none);
    datagram.push_back(std::byte{0});
    reseal(datagram);
    EXPECT_EQ(decode(datagram), Refusal::truncated);
  }
  datagram = size_datagram();
  datagram[22] = std::byte{4};
  reseal(datagram);
  EXPECT_EQ(decode(datagram), Refusal::field);
}

TEST(DecodePiece, FieldsThatDoNotFitAreRefused) {  // WIRE 10.6
  const auto with = [](std::uint16_t whole, std::uint16_t offset) {
    Datagram datagram = piece_datagram();
    encode_piece(prefix_of(PacketType::piece), {.whole = whole, .offset = offset}, datagram);
    return decode(datagram);
  };
  EXPECT_EQ(with(100, 40), Refusal::none);
  EXPECT_EQ(with(100, 41), Refusal::field) << "no multiple of its length";
  EXPECT_EQ(with(100, 120), Refusal::field) << "behind the end";
  EXPECT_EQ(with(40, 0), Refusal::field) << "would be the whole";
  EXPECT_EQ(with(64 * 40, 0), Refusal::none);
  EXPECT_EQ(with(64 * 40 + 1, 0), Refusal::field) << "too many pieces";
  EXPECT_EQ(with(40000, 0), Refusal::field) << "longer than any datagram";
}

}  // namespace
}  // namespace leeway::wire
