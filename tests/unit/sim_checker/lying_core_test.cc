// The checkers must find a broken core, and name the broken invariant.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/crc32c.h"
#include "core_run.h"
#include "wire/packet.h"

namespace leeway::sim {
namespace {

constexpr const char* kClean =
    "ranks: 3 rounds: 4 operation { bytes: 40000 } link { delay_ms { fixed: 0.5 } }";
constexpr const char* kLossy =
    "ranks: 3 rounds: 6 operation { bytes: 40000 } link { delay_ms { fixed: 0.5 } loss { random { "
    "p: 0.1 } } }";

// Returns the ids of the invariants that failed, such as "i3 i5", without the text.
std::string broken(const std::vector<CheckRecord>& records) {
  const std::string text = failed(records);
  return text.substr(0, text.find(':'));
}
std::string broken(const char* scenario, Lies lies) {
  return broken(CoreRun(scenario, 1, std::move(lies)).run());
}

bool is_data(ByteSpan datagram, wire::DataHeader& header) {
  wire::Prefix prefix;
  ByteSpan payload;
  return wire::peek_prefix(datagram, prefix) == wire::Refusal::none &&
         prefix.type == wire::PacketType::data &&
         wire::decode_data(datagram, header, payload) == wire::Refusal::none;
}

bool is_packet(ByteSpan datagram, std::uint32_t round, wire::FlowKind kind, std::uint32_t index) {
  wire::DataHeader header;
  return is_data(datagram, header) && header.round == round && header.kind == kind &&
         header.index.value == index;
}

// Makes the same change to every outcome of rank 1 in round 2.
Lies outcome_of(std::function<void(CallResult&, CollectiveReport&, std::span<float>)> change) {
  return {.outcome = [change](std::uint32_t rank, const Call& call, CallResult& result,
                              CollectiveReport& report, std::span<float> values) {
    if (rank == 1 && call.round == 2) change(result, report, values);
  }};
}

Lies row_of(std::function<void(PeerReport&)> change) {
  return outcome_of([change](CallResult& result, CollectiveReport& report, std::span<float>) {
    change(report.peers[0]);
    std::uint64_t arrived = 0;
    std::uint64_t expected = 0;
    for (const PeerReport& row : report.peers) {
      arrived += row.arrived;
      expected += row.expected;
    }
    result.arrived = result.arrived_first = arrived;
    result.expected = expected;
    report.loss = report.loss_first_pass =
        1.0 - static_cast<double>(arrived) / static_cast<double>(expected);
  });
}

TEST(Truth, IsBelieved) {
  EXPECT_EQ(broken(kClean, {}), "");
  EXPECT_EQ(broken(kLossy, {}), "");
}

// ---- I1

TEST(Conservation, MissesAPacketThatVanished) {
  int left = 5;
  EXPECT_EQ(broken(kClean, {.packet =
                                [&](PacketStep step, Packet&) {
                                  return step != PacketStep::delivered || --left != 0;
                                }}),
            "i1");
}

TEST(Conservation, MissesAPacketOfAnotherKind) {
  int left = 5;
  EXPECT_EQ(broken(kClean, {.packet =
                                [&](PacketStep step, Packet& packet) {
                                  if (step == PacketStep::sent && --left == 0)
                                    packet.traffic = Traffic::cross;
                                  return true;
                                }}),
            "i1");
}

// ---- I2, I5

constexpr std::size_t kOwned = 4000;  // an element of rank 1's shard

TEST(Reduction, FindsASumThatIsFarOff) {
  EXPECT_EQ(broken(kClean, outcome_of([](CallResult&, CollectiveReport&, std::span<float> values) {
                     values[kOwned] += 1.0f;
                   })),
            "i2 i5 i6");
}

TEST(Reduction, FindsASumThatIsOffByOneBit) {
  EXPECT_EQ(broken(kLossy, outcome_of([](CallResult&, CollectiveReport&, std::span<float> values) {
                     values[kOwned] =
                         std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[kOwned]) ^ 1);
                   })),
            "i5 i6");
}

TEST(Reduction, FindsAReportThatLeavesOutASender) {
  // The core used a contribution that the checkers did not see, so sum and ledger disagree.
  EXPECT_EQ(broken(kClean, {.copies =
                                [](std::uint32_t rank, std::uint32_t from, ByteSpan datagram) {
                                  return rank == 1 && from == 0 &&
                                                 is_packet(datagram, 2, wire::FlowKind::reduce, 3)
                                             ? 0
                                             : 1;
                                }}),
            "i2 i3 i5");
}

// Gives a datagram another packet index, with a right checksum.
void move_packet(std::vector<std::byte>& datagram, std::uint32_t from, std::uint32_t to) {
  wire::Prefix prefix;
  wire::DataHeader header;
  ByteSpan payload;
  if (wire::peek_prefix(datagram, prefix) != wire::Refusal::none ||
      prefix.type != wire::PacketType::data ||
      wire::decode_data(datagram, header, payload) != wire::Refusal::none)
    return;
  if (header.kind != wire::FlowKind::reduce || header.index.value != from) return;
  header.index = {to};
  wire::encode_data(prefix, header, crc32c(payload), datagram);
}

TEST(Reduction, FindsAContributionInAWrongSlot) {
  const auto swap = [](std::uint32_t rank, std::vector<std::byte>& datagram) {
    if (rank != 2) return;
    wire::DataHeader header;
    if (!is_data(datagram, header)) return;
    header.index.value == 1 ? move_packet(datagram, 1, 2) : move_packet(datagram, 2, 1);
  };
  EXPECT_EQ(broken(kClean, {.datagram = swap}), "i2");
}

TEST(Reduction, FindsAWrongSlotOfEncodedContributions) {
  const auto swap = [](std::uint32_t, std::vector<std::byte>& datagram) {
    wire::DataHeader header;
    if (!is_data(datagram, header)) return;
    header.index.value == 0 ? move_packet(datagram, 0, 1) : move_packet(datagram, 1, 0);
  };
  const std::string text = broken(
      "ranks: 3 rounds: 2 operation { bytes: 40000 codec: \"int8\" } link { delay_ms { fixed: 0.5 "
      "} }",
      {.datagram = swap});
  EXPECT_NE(text.find("i2"), std::string::npos) << text;
  EXPECT_NE(text.find("i5"), std::string::npos) << text;
}

// ---- I3

TEST(Report, FindsADuplicateThatWasNotTold) {
  EXPECT_EQ(broken(kClean, {.copies =
                                [](std::uint32_t rank, std::uint32_t, ByteSpan datagram) {
                                  return rank == 1 &&
                                                 is_packet(datagram, 2, wire::FlowKind::spread, 0)
                                             ? 2
                                             : 1;
                                }}),
            "i3");
}

TEST(Report, FindsAnArrivalTooMany) {
  EXPECT_EQ(broken(kLossy, row_of([](PeerReport& row) { ++row.arrived; })), "i3");
}

TEST(Report, FindsAnArrivalTooFew) {
  EXPECT_EQ(broken(kClean, row_of([](PeerReport& row) { --row.arrived; })), "i3");
}

TEST(Report, FindsADuplicateCountedAsArrival) {
  EXPECT_EQ(broken("ranks: 3 rounds: 4 operation { bytes: 40000 } link { delay_ms { fixed: 0.5 } "
                   "duplicate { p: 0.3 } }",
                   row_of([](PeerReport& row) { row.arrived += std::exchange(row.duplicate, 0); })),
            "i3");
}

TEST(Report, FindsAnArrivalCalledLateBeforeItsSenderEnded) {
  EXPECT_EQ(broken(kClean, row_of([](PeerReport& row) {
                     --row.arrived;
                     ++row.late;
                   })),
            "i3");
}

TEST(Report, FindsAWrongLoss) {
  EXPECT_EQ(broken(kLossy, outcome_of([](CallResult&, CollectiveReport& report, std::span<float>) {
                     report.loss = 0.5;
                   })),
            "i3");
}

TEST(Report, FindsAWrongCountOfContributors) {
  EXPECT_EQ(broken(kLossy, outcome_of([](CallResult&, CollectiveReport& report, std::span<float>) {
                     --report.contributors.histogram[3];
                     ++report.contributors.histogram[2];
                   })),
            "i3");
}

TEST(Report, FindsADeadlineThatHasNotCome) {
  EXPECT_EQ(
      broken(kClean, outcome_of([](CallResult& result, CollectiveReport& report, std::span<float>) {
               result.deadline_cut = report.deadline_cut = true;
             })),
      "i3");
}

TEST(Report, FindsAgreementThatIsNone) {
  EXPECT_EQ(broken(kClean, outcome_of([](CallResult&, CollectiveReport& report, std::span<float>) {
                     report.complete = false;
                   })),
            "i3");
}

TEST(Report, FindsACallThatIsReportedTooEarly) {
  // The checkers do not see the last packet of a sender, so the call seems to end too early without
  // loss.
  Lies lies = row_of([](PeerReport& row) { row.arrived -= 1; });
  lies.copies = [](std::uint32_t rank, std::uint32_t from, ByteSpan datagram) {
    wire::DataHeader header;
    const bool last = is_data(datagram, header) && header.round == 2 &&
                      header.kind == wire::FlowKind::spread &&
                      header.position.value + 1 == header.flow_packets;
    return rank == 1 && from == 0 && last ? 0 : 1;
  };
  const std::string text = broken(kClean, lies);
  EXPECT_NE(text.find("i3"), std::string::npos) << text;
}

TEST(Report, FindsARoundNumberUsedTwice) {
  // Data of the engine's third call arrive under the number of the second call.
  const auto reuse = [](std::uint32_t, std::vector<std::byte>& datagram) {
    wire::Prefix prefix;
    wire::DataHeader header;
    ByteSpan payload;
    if (!is_data(datagram, header) || header.round != 2) return;
    (void)wire::peek_prefix(datagram, prefix);
    (void)wire::decode_data(datagram, header, payload);
    header.round = 1;
    wire::encode_data(prefix, header, crc32c(payload), datagram);
  };
  const std::string text = broken(kClean, {.datagram = reuse});
  EXPECT_NE(text.find("i3"), std::string::npos) << text;
}

// ---- I4

TEST(Deadline, FindsACallThatReturnsTooLate) {
  EXPECT_EQ(broken(kClean, {.delay_of_return = std::chrono::milliseconds(1001)}), "i4");
}

// ---- I6

TEST(Agreement, FindsARankThatHoldsAnotherResult) {
  EXPECT_EQ(broken(kClean, outcome_of([](CallResult&, CollectiveReport&, std::span<float> values) {
                     values[9000] += 1.0f;  // in rank 2's shard
                   })),
            "i6");
}

TEST(Agreement, FindsMissingPiecesThatAreNotZero) {
  // The spread is exact, but rank 0 is paused for longer than the call lasts, so pieces are
  // missing.
  CoreRun run(
      "ranks: 3 rounds: 1 operation { bytes: 40000 delivery { deadline_ms: 20 } } link { "
      "delay_ms { fixed: 0.5 } } pause { rank: 0 for_ms: 1 }",
      1,
      {.outcome = [](std::uint32_t rank, const Call&, CallResult&, CollectiveReport&,
                     std::span<float> values) {
        if (rank == 1) values[10] = 1.0f;
      }});
  run.pause(0, Instant{100'000}, Instant{60'000'000});
  EXPECT_EQ(broken(run.run()), "i6");
}

constexpr const char* kReplica =
    "ranks: 3 rounds: 12 operation { kind: replica_step bytes: 40000 replica { age_max: 1 } } link "
    "{ "
    "delay_ms { fixed: 0.5 } loss { random { p: 0.3 } } }";

TEST(Agreement, FindsParametersThatAreTooOld) {
  CoreRun run(kReplica, 1);
  EXPECT_EQ(broken(run.run()), "");
  CoreRun stale(kReplica, 1);
  stale.refresh_old = false;
  EXPECT_EQ(broken(stale.run()), "i6");
}

TEST(Agreement, FindsParametersThatNoPacketBrought) {
  Lies lies;
  lies.outcome = [](std::uint32_t rank, const Call& call, CallResult&, CollectiveReport&,
                    std::span<float> values) {
    if (rank == 1 && call.kind == CallKind::replica_broadcast && call.round == 5)
      values[9000] = 7.0f;
  };
  EXPECT_EQ(broken(kReplica, lies), "i6");
}

// ---- I7, I9, I13

TEST(Memory, FindsAPlaceThatWasNotGivenBack) {
  CoreRun run(kClean, 1);
  run.network().payloads().put({});
  EXPECT_EQ(broken(run.run()), "i7");
}

TEST(Liveness, FindsLossAfterTheLastFault) {
  CoreRun clean("ranks: 3 rounds: 6 operation { bytes: 40000 } link { delay_ms { fixed: 0.5 } }",
                1);
  clean.checkers().on_faults_over(0);
  const auto records = clean.run();
  EXPECT_EQ(broken(records), "");
  EXPECT_EQ(record_of(records, "i9").checked, 9u);
  CoreRun lossy(kLossy, 1);
  lossy.checkers().on_faults_over(0);
  EXPECT_EQ(broken(lossy.run()), "i9");
}

TEST(Strangers, FindsADamagedDatagramThatWasTaken) {
  int left = 20;
  EXPECT_EQ(broken(kClean, {.datagram =
                                [&](std::uint32_t, std::vector<std::byte>& datagram) {
                                  wire::Prefix prefix;
                                  const bool report =
                                      wire::peek_prefix(datagram, prefix) == wire::Refusal::none &&
                                      prefix.type == wire::PacketType::report;
                                  if (report && --left == 0) datagram[30] ^= std::byte{1};
                                }}),
            "i13");
}

// ---- what a scenario skips

TEST(Skip, LeavesAnInvariantOut) {
  const std::string text = std::string(kClean) + " checkers { skip: \"i4\" }";
  const auto records = CoreRun(text, 1, {.delay_of_return = std::chrono::milliseconds(1001)}).run();
  EXPECT_EQ(broken(records), "");
  EXPECT_EQ(record_of(records, "i4").verdict, Verdict::skipped);
}

}  // namespace
}  // namespace leeway::sim
