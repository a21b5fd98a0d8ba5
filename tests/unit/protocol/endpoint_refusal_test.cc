// Datagrams that no rank of the group would send at all, or at that time, must be refused or
// ignored. They must be counted, and have no effect.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/philox.h"
#include "endpoint_pair.h"
#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::copy_of;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::forge_data;
using testing::GroupOptions;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kEpoch = 77;
constexpr std::size_t kPayload = 1408;

class Intruder : public ::testing::Test {
 protected:
  // Rank 0 opens an operation that rank 1 has not joined.
  void SetUp() override { call_.submit(group_, 0); }

  std::uint64_t refused(wire::Refusal reason) const {
    return counters().refused[static_cast<int>(reason)];
  }
  const EndpointCounters& counters() const { return group_.engine(0).endpoint().counters(); }
  wire::DataHeader plausible() const {
    wire::DataHeader header;
    header.flow_packets = 29;  // 20000 elements, of which this rank owns half, 352 in a packet
    header.tag_digest = digest_;
    return header;
  }
  void inject(const Bytes& datagram, Rank from = 1) { group_.inject(0, from, datagram); }
  void expect_unharmed() {
    call_.submit(group_, 1);
    EXPECT_TRUE(call_.finish(group_, 1s));
  }

  mutable EngineGroup group_{GroupOptions{.size = 2}};
  FloatAllReduce call_{2, 20000};
  std::uint32_t digest_ = 0;
};

TEST_F(Intruder, WrongEpochVersionRouteOrChecksumIsRefusedByName) {
  inject(forge_data(kEpoch + 1, 1, 0, plausible(), kPayload));
  inject(forge_data(kEpoch, 1, 1, plausible(), kPayload));
  inject(forge_data(kEpoch, 0, 0, plausible(), kPayload));
  inject(forge_data(kEpoch, 9, 0, plausible(), kPayload), 1);
  Bytes version = forge_data(kEpoch, 1, 0, plausible(), kPayload);
  version[2] = std::byte{9};
  inject(version);
  Bytes corrupt = forge_data(kEpoch, 1, 0, plausible(), kPayload);
  corrupt[700] ^= std::byte{1};
  inject(corrupt);
  inject(Bytes(5));
  inject(Bytes(limits::kDatagramBytesMax + 1));
  EXPECT_EQ(refused(wire::Refusal::epoch), 1u);
  EXPECT_EQ(refused(wire::Refusal::misrouted), 3u);
  EXPECT_EQ(refused(wire::Refusal::version), 1u);
  EXPECT_EQ(refused(wire::Refusal::checksum), 1u);
  EXPECT_EQ(refused(wire::Refusal::truncated), 1u);
  EXPECT_EQ(refused(wire::Refusal::oversized), 1u);
  EXPECT_EQ(counters().data_received, 0u);
  EXPECT_FALSE(group_.engine(0).endpoint().link(1).heard);
  expect_unharmed();
}

TEST_F(Intruder, SourceThatIsNotTheSendersAddressIsRefused) {
  EngineGroup group(GroupOptions{.size = 3});
  group.inject(0, 2, forge_data(kEpoch, 1, 0, plausible(), kPayload));
  EXPECT_EQ(
      group.engine(0).endpoint().counters().refused[static_cast<int>(wire::Refusal::misrouted)],
      1u);
}

TEST_F(Intruder, FutureRoundsAreCountedOrKeptWithinTheirShare) {
  wire::DataHeader header = plausible();
  header.round = 1 + limits::kRoundsAheadMax;
  inject(forge_data(kEpoch, 1, 0, header, kPayload));
  EXPECT_EQ(counters().future_round, 1u);
  header.round = 1 + limits::kOpenRoundsMax - 1;
  for (std::uint32_t i = 0; i < limits::kEarlySlotsPerPeer + 3; ++i) {
    header.index = {i};
    inject(forge_data(kEpoch, 1, 0, header, kPayload));
  }
  EXPECT_EQ(counters().early_kept, limits::kEarlySlotsPerPeer);
  EXPECT_EQ(counters().early_dropped, 3u);
}

TEST_F(Intruder, FieldsOutsideTheirRangeAreRefusedBeforeTheyAreUsed) {
  wire::DataHeader header = plausible();
  header.index = {header.flow_packets};
  inject(forge_data(kEpoch, 1, 0, header, kPayload));
  header = plausible();
  for (const float weight : {-1.0f, 0x1p65f, 0x1p-65f, 0x1p-149f, INFINITY, NAN}) {
    header.weight = weight;
    inject(forge_data(kEpoch, 1, 0, header, kPayload));
  }
  EXPECT_EQ(refused(wire::Refusal::field), 7u);
  expect_unharmed();
}

// A peer's numbers may be ahead of this rank's by limits::kRoundsAheadMax at most (WIRE 2.6).
TEST_F(Intruder, NumbersThatJumpAreRefusedAndNothingOfThemIsBelieved) {
  const auto& peer = group_.engine(0).endpoint().link(1);
  wire::DataHeader header = plausible();
  header.round = 3;  // not open here
  header.opened_below = 1 + limits::kRoundsAheadMax + 1;
  inject(forge_data(kEpoch, 1, 0, header, kPayload));
  header.settled_below = std::exchange(header.opened_below, 0);
  inject(forge_data(kEpoch, 1, 0, header, kPayload));
  EXPECT_EQ(counters().refused_progress, 2u);
  EXPECT_EQ(peer.peer_opened_below, 0u);
  header.opened_below = header.settled_below = 1 + limits::kRoundsAheadMax;
  inject(forge_data(kEpoch, 1, 0, header, kPayload));
  EXPECT_EQ(counters().refused_progress, 2u) << "as far as a peer may be";
  EXPECT_EQ(peer.peer_settled_below, 1u) << "of what is not open here nothing is believed";
}

class Tampered : public ::testing::Test {
 protected:
  // Catches one genuine packet from rank 1 to rank 0, lets `tamper` change its header, and delivers
  // the result instead.
  void run(const std::function<void(wire::DataHeader&, std::size_t& payload_bytes)>& tamper) {
    EngineGroup group(GroupOptions{.size = 2});
    bool done = false;
    Bytes changed;
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      auto header = data_header_of(datagram);
      if (!header || from != 1 || done) return true;
      std::size_t payload_bytes = datagram.size() - wire::kDataHeaderBytes;
      tamper(*header, payload_bytes);
      changed = forge_data(kEpoch, 1, 0, *header, payload_bytes);
      done = true;
      return false;
    };
    FloatAllReduce call(2, 20000);
    call.submit_all(group);
    group.run_until([&] { return !changed.empty(); });
    group.inject(0, 1, changed);
    counters_ = group.engine(0).endpoint().counters();
    EXPECT_TRUE(call.finish(group, 1s)) << "the genuine packet is repaired, the other was not used";
  }
  EndpointCounters counters_;
};

TEST_F(Tampered, OtherOperationIsRefused) {
  run([](wire::DataHeader& header, std::size_t&) { header.tag_digest ^= 1; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, OtherFlowLengthIsRefused) {
  run([](wire::DataHeader& header, std::size_t&) { header.flow_packets += 1; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, IndexBeyondOurPlanIsRefused) {
  run([](wire::DataHeader& header, std::size_t&) {
    header.flow_packets = 4000, header.index = {3999};
  });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, OtherCodecIsRefused) {
  run([](wire::DataHeader& header, std::size_t&) { header.codec = Codec::bf16; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, ShorterPayloadIsRefused) {
  run([](wire::DataHeader&, std::size_t& payload_bytes) { payload_bytes -= 4; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, LongerPayloadIsRefused) {
  run([](wire::DataHeader&, std::size_t& payload_bytes) { payload_bytes += 4; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, EmptyPayloadIsRefused) {
  run([](wire::DataHeader&, std::size_t& payload_bytes) { payload_bytes = 0; });
  EXPECT_EQ(counters_.refused_plan, 1u);
}
TEST_F(Tampered, PhaseThatTheOperationHasNotIsNotPartOfIt) {
  run([](wire::DataHeader& header, std::size_t&) { header.kind = wire::FlowKind::point; });
  EXPECT_EQ(counters_.refused_plan, 0u);
  EXPECT_EQ(counters_.early_kept, 1u) << "kept for a message that may still be asked for";
}

TEST(EndpointClosedRound, DataOfItAreCountedAndAnsweredByAReport) {
  EngineGroup group(GroupOptions{.size = 2});
  std::vector<Bytes> copies;
  group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    if (from == 1 && testing::is_data(datagram)) copies.push_back(copy_of(datagram));
    return true;
  };
  FloatAllReduce call(2, 20000);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  ASSERT_TRUE(group.settle());
  const auto before = group.engine(0).endpoint().counters();
  for (const Bytes& copy : copies) group.inject(0, 1, copy);
  group.run_until([] { return false; }, 5ms);
  const auto& after = group.engine(0).endpoint().counters();
  EXPECT_EQ(after.closed_round - before.closed_round, copies.size());
  EXPECT_GT(after.reports_sent, before.reports_sent);
  EXPECT_TRUE(call.holds_sum());
}

TEST(EndpointReports, ClaimsOfMoreThanWasSentAreCountedAndIgnored) {
  EngineGroup group(GroupOptions{.size = 2});
  FloatAllReduce call(2, 20000);
  call.submit(group, 0);
  wire::Report report;
  report.largest_sequence = 1000000;
  report.received = 1000000;
  report.opened_below = 1;
  Bytes datagram(limits::kDatagramBytesMax);
  datagram.resize(
      wire::encode_report({wire::PacketType::report, kEpoch, 1, 0, 1}, report, datagram));
  group.inject(0, 1, datagram);
  EXPECT_EQ(group.engine(0).endpoint().counters().refused_report, 1u);
  EXPECT_EQ(group.engine(0).endpoint().link(1).peer_opened_below, 0u)
      << "nothing of it is believed";
  call.submit(group, 1);
  EXPECT_TRUE(call.finish(group, 1s));
}

// If a report does not list a round below its `opened_below`, the reporter has closed it (WIRE
// 3.4). So a forged number once ended every open operation.
TEST(EndpointReports, NumbersThatJumpEndNoOperation) {
  for (const bool messages : {false, true}) {
    EngineGroup group(GroupOptions{.size = 2});
    FloatAllReduce call(2, 20000);
    call.submit(group, 0);
    wire::Report report;
    (messages ? report.point_opened_below : report.opened_below) =
        (messages ? limits::kMessagesHeardMax : limits::kRoundsAheadMax) + 2;
    Bytes datagram(limits::kDatagramBytesMax);
    datagram.resize(
        wire::encode_report({wire::PacketType::report, kEpoch, 1, 0, 1}, report, datagram));
    group.inject(0, 1, datagram);
    EXPECT_EQ(group.engine(0).endpoint().counters().refused_progress, 1u);
    EXPECT_EQ(group.engine(0).endpoint().link(1).peer_opened_below, 0u);
    group.run_until([] { return false; }, 100ms);
    call.submit(group, 1);
    EXPECT_TRUE(call.finish(group, 1s));
    EXPECT_TRUE(call.holds_sum());
  }
}

TEST(EndpointReports, CopiesAndOldOnesChangeNothing) {
  EngineGroup group(GroupOptions{.size = 2});
  std::vector<std::pair<Rank, Bytes>> reports;
  group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    if (testing::type_of(datagram) == wire::PacketType::report)
      reports.emplace_back(to, copy_of(datagram));
    return true;
  };
  for (int round = 0; round < 5; ++round) {
    FloatAllReduce call(2, 50000);
    call.submit_all(group);
    for (const auto& [to, bytes] : std::vector(reports))
      group.inject(to, static_cast<Rank>(1 - to), bytes);
    ASSERT_TRUE(call.finish(group, 1s));
  }
  EXPECT_GT(reports.size(), 10u);
}

TEST(EndpointRepairRequests, BeyondTheFlowOrOfNoRoundAreIgnored) {
  EngineGroup group(GroupOptions{.size = 2});
  FloatAllReduce call(2, 20000);
  call.submit(group, 0);
  const auto inject = [&](const wire::Repair& repair, std::size_t words) {
    Bytes datagram(limits::kDatagramBytesMax);
    datagram.resize(wire::encode_repair({wire::PacketType::repair, kEpoch, 1, 0, 1}, repair,
                                        std::vector<std::uint64_t>(words, ~std::uint64_t{0}),
                                        datagram));
    group.inject(0, 1, datagram);
  };
  inject({.round = 0, .kind = wire::FlowKind::reduce, .attempt = 1, .base = 64}, 100);
  inject({.round = 0, .kind = wire::FlowKind::spread, .attempt = 1, .base = 0}, 1);
  inject({.round = 5, .kind = wire::FlowKind::reduce, .attempt = 1, .base = 0}, 1);
  inject({.round = 0, .kind = wire::FlowKind::point, .attempt = 1, .base = 0}, 1);
  group.run_until([] { return false; }, 5ms);
  EXPECT_EQ(group.engine(0).endpoint().counters().repairs_sent, 0u);
  EXPECT_EQ(group.engine(0).endpoint().counters().repair_requests, 4u);
  call.submit(group, 1);
  EXPECT_TRUE(call.finish(group, 1s));
}

// A barrier has no reduce half. Data for that half must be refused, though their digest is right.
TEST(EndpointHalves, OnesThatTheOperationHasNotAreRefused) {
  EngineGroup group(GroupOptions{.size = 2});
  const collective::OperationSpec barrier{.kind = collective::OperationKind::barrier};
  std::optional<wire::DataHeader> genuine;
  group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    if (from == 1 && !genuine) genuine = data_header_of(datagram);
    return from != 1;
  };
  group.submit(1, barrier);
  group.run_until([&] { return genuine.has_value(); });
  ASSERT_TRUE(genuine);
  genuine->kind = wire::FlowKind::reduce;
  const auto inject = [&](wire::PacketType type) {
    if (type == wire::PacketType::data)
      return group.inject(0, 1, forge_data(kEpoch, 1, 0, *genuine, 1));
    Bytes datagram(limits::kDatagramBytesMax);
    const wire::Prefix prefix{type, kEpoch, 1, 0, 1};
    const std::vector<std::uint64_t> all{~std::uint64_t{0}};
    datagram.resize(type == wire::PacketType::end
                        ? wire::encode_end(prefix,
                                           {.flow_packets = 1, .tag_digest = genuine->tag_digest},
                                           datagram)
                        : wire::encode_repair(prefix, {.attempt = 1}, all, datagram));
    group.inject(0, 1, datagram);
  };
  inject(wire::PacketType::data);  // before rank 0 has opened it
  auto& waiting = group.submit(0, barrier);
  group.run_until([] { return false; }, 1ms);
  for (const auto type : {wire::PacketType::data, wire::PacketType::end, wire::PacketType::repair})
    inject(type);
  const EndpointCounters& counters = group.engine(0).endpoint().counters();
  EXPECT_EQ(counters.refused_plan, 1u) << "the early one";
  EXPECT_EQ(counters.closed_round, 1u) << "the other one";
  EXPECT_EQ(counters.repairs_sent, 0u);
  group.filter = nullptr;
  EXPECT_TRUE(group.run_until([&] { return waiting.done; }, 1s));
  EXPECT_TRUE(waiting.status.ok()) << waiting.status.text();
}

// Required by WIRE 6.10.
TEST(EndpointProbes, AFloodIsAnsweredEightTimesARoundTripAndOnceBehindIt) {
  EndpointPair pair;
  FakeClient first(2, 2);
  FakeClient second(2, 2);
  pair.open(0, pair.collective(), first);
  pair.open(1, pair.collective(), second);
  pair.pass(100ms);  // both know the round trip, and nothing is under way
  const Duration round_trip = pair[0].link(1).rtt().smoothed();
  std::uint64_t answers = 0;
  pair.filter = [&](Rank from, ByteSpan datagram) {
    answers += from == 0 && testing::type_of(datagram) == wire::PacketType::report;
    return true;
  };
  constexpr int kFlood = 160;
  for (std::uint32_t i = 0; i < kFlood; ++i) {
    Bytes probe(wire::kPrefixBytes);
    wire::encode_bare({wire::PacketType::probe, 1, 1, 0, 100 + i}, probe);
    pair[0].on_datagram(pair.now(), 1, probe);
    pair.pass(round_trip / 16);  // ten round trips in all
  }
  EXPECT_GE(answers, 10u);
  // Besides the answers to probes, every 16 datagrams, a quarter of the window, make a report.
  EXPECT_LE(answers, 10u * limits::kProbeAnswersPerRoundTrip + kFlood / 16 + 2);
  const std::uint64_t before = answers;
  Bytes probe(wire::kPrefixBytes);
  for (std::uint32_t i = 0; i < 2; ++i) {
    wire::encode_bare({wire::PacketType::probe, 1, 1, 0, 1000 + i}, probe);
    pair[0].on_datagram(pair.now(), 1, probe);
  }
  pair.pass(round_trip);
  EXPECT_GE(answers, before + 1) << "the last one is answered";
}

// While operations run, random bytes of genuine datagrams are changed, and the checksum is made to
// fit. Nothing may crash or hang; sanitizers watch the memory.
TEST(EndpointFuzz, AuthenticNonsenseNeitherCrashesNorHangs) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    EngineGroup group(GroupOptions{.size = 3});
    std::uint32_t sent = 0;
    std::vector<std::pair<Rank, Bytes>> nonsense;
    group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
      const std::uint64_t draw = keyed_hash(seed, ++sent, 0, 0, 0);
      if (from == 2 && draw % 4 == 0) {
        Bytes bytes = copy_of(datagram);
        for (std::uint32_t i = 0; i < 1 + draw % 3; ++i) {
          const std::uint64_t where = keyed_hash(seed, sent, 0, i, 1);
          bytes[8 + where % (std::min<std::size_t>(bytes.size(), 80) - 8)] ^=
              static_cast<std::byte>(1 << (where >> 60));
        }
        const std::size_t header =
            testing::is_data(datagram) ? wire::kDataHeaderBytes : bytes.size();
        std::uint32_t crc = crc32c(ByteSpan(bytes).subspan(header));
        crc = crc32c(ByteSpan(bytes).subspan(8, header - 8), crc32c(ByteSpan(bytes).first(4), crc));
        std::memcpy(bytes.data() + 4, &crc, sizeof(crc));
        nonsense.emplace_back(to, std::move(bytes));
      }
      return true;
    };
    FloatAllReduce call(3, 20000, seed % 2 == 0 ? exact(200ms) : best_effort(200ms));
    call.submit_all(group);
    const auto done = [&] {
      for (auto& [to, bytes] : std::exchange(nonsense, {})) group.inject(to, 2, bytes);
      return std::all_of(call.requests().begin(), call.requests().end(),
                         [](auto* request) { return request->done; });
    };
    EXPECT_TRUE(group.run_until(done, 200ms + Duration(limits::kTickNs))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace leeway::protocol
