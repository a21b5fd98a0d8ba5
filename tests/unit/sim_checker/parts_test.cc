// Tests single checkers without a core. The tests feed each checker by hand with events that it
// must accept, and with events that it must not accept.
#include <gtest/gtest.h>

#include <array>

#include "base/philox.h"
#include "checker/agreement.h"
#include "checker/bias.h"
#include "checker/checkers.h"
#include "checker/conservation.h"
#include "checker/credit.h"
#include "checker/deadlines.h"
#include "checker/departures.h"
#include "checker/ledger_book.h"
#include "checker/network_traits.h"
#include "core_run.h"

namespace leeway::sim {
namespace {

Check made() {
  return {"i0", "a rule"};
}

constexpr Instant at_ms(std::int64_t ms) {
  return {ms * 1'000'000};
}

TEST(Check, TellsTheFirstFailureOnly) {
  Check check = made();
  check.expect(true, [] { return std::string("never asked"); });
  check.expect(false, [] { return std::string("first"); });
  check.expect(false, [] { return std::string("second"); });
  const CheckRecord record = check.record();
  EXPECT_EQ(record.verdict, Verdict::failed);
  EXPECT_EQ(record.checked, 3u);
  EXPECT_EQ(record.failures, 2u);
  EXPECT_EQ(record.first_failure, "first");
}

TEST(Check, ThatNeverLookedDoesNotApply) {
  EXPECT_EQ(made().record().verdict, Verdict::not_applicable);
  Check check = made();
  check.rule_out("because");
  check.rule_out("another");
  EXPECT_EQ(check.record().first_failure, "because");
}

// ---- I1

NetworkCounters balanced() {
  NetworkCounters counters;
  counters.sent[0] = 10;
  counters.copied[0] = 1;
  counters.delivered[0] = 7;
  counters.lost[0] = 2;
  return counters;
}

void tell(Conservation& conservation, PacketStep step, int times) {
  for (int i = 0; i < times; ++i) conservation.on_packet(step, {});
}

TEST(Conservation, HoldsForCountersThatBalance) {
  Check check = made();
  Conservation conservation(check);
  tell(conservation, PacketStep::sent, 10);
  tell(conservation, PacketStep::duplicated, 1);
  tell(conservation, PacketStep::delivered, 7);
  tell(conservation, PacketStep::lost, 1);
  tell(conservation, PacketStep::blocked, 1);
  conservation.check({}, balanced(), {2, 0, 0});
  EXPECT_EQ(check.failures(), 0u);
  conservation.check({}, balanced(), {3, 0, 0});
  EXPECT_EQ(check.failures(), 1u);
}

TEST(Conservation, ComparesTheCountersWithTheSteps) {
  Check check = made();
  Conservation conservation(check);
  conservation.check({}, balanced(), {2, 0, 0});
  EXPECT_EQ(check.failures(), 1u);
}

TEST(Conservation, HoldsOfEveryLink) {
  LinkCounters link;
  link.offered[1] = 5;
  link.copied[1] = 1;
  link.passed[1] = 4;
  link.lost[1] = 1;
  Check check = made();
  Conservation conservation(check);
  conservation.check_links({}, std::array{link, link}, {0, 2, 0});
  EXPECT_EQ(check.failures(), 0u);
  conservation.check_links({}, std::array{link, link}, {0, 1, 0});
  EXPECT_EQ(check.failures(), 1u);
  link.passed[1] = 6;
  conservation.check_links({}, std::array{link}, {0, std::uint64_t(-1), 0});
  EXPECT_EQ(check.failures(), 2u);
}

// ---- I4

constexpr Duration kDeadline = std::chrono::milliseconds(10);

TEST(Deadlines, AllowOneTick) {
  Check check = made();
  Deadlines deadlines(check, 1);
  deadlines.on_submit(at_ms(5), 0, kDeadline);
  deadlines.on_done(at_ms(16), 0);
  EXPECT_EQ(check.failures(), 0u);
  deadlines.on_submit(at_ms(20), 0, kDeadline);
  deadlines.on_done(at_ms(31) + Duration(1), 0);
  EXPECT_EQ(check.failures(), 1u);
}

TEST(Deadlines, DoNotCountPauses) {
  Check check = made();
  Deadlines deadlines(check, 2);
  deadlines.on_submit(at_ms(0), 0, kDeadline);
  deadlines.on_pause(at_ms(2), 0);
  deadlines.on_resume(at_ms(50), 0);
  deadlines.on_done(at_ms(58), 0);
  EXPECT_EQ(check.failures(), 0u);
  deadlines.on_submit(at_ms(60), 0, kDeadline);
  deadlines.on_pause(at_ms(62), 1);
  deadlines.on_done(at_ms(100), 0);
  EXPECT_EQ(check.failures(), 1u);
}

TEST(Deadlines, FindCallsThatNeverReturn) {
  Check check = made();
  Deadlines deadlines(check, 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) deadlines.on_submit(at_ms(0), rank, kDeadline);
  deadlines.on_kill(1);
  deadlines.on_pause(at_ms(5), 2);
  deadlines.finish(at_ms(40));
  EXPECT_EQ(check.failures(), 1u);
}

struct Pair {
  Pair() {
    protocol::EndpointConfig config;
    config.size = 2;
    config.window_bytes = {16 * 1472, 16 * 1472};
    for (Rank rank = 0; rank < 2; ++rank) {
      config.self = rank;
      owned.push_back(std::make_unique<collective::Engine>(config));
      engines.push_back(owned.back().get());
    }
  }
  std::vector<std::unique_ptr<collective::Engine>> owned;
  std::vector<const collective::Engine*> engines;
};

// ---- I3

// Feeds calls of two ranks to the ledger book, all at one time. Rank 0 sends and rank 1 receives.
class TwoRanks {
 public:
  static constexpr std::size_t kPackets = 3;

  explicit TwoRanks(collective::OperationKind kind) {
    spec.kind = kind;
    spec.peer = 0;
    spec.input = spec.output = std::span(values);
    if (kind != collective::OperationKind::replica_broadcast) return;
    values.resize(2 * values.size(), 1.0f);  // the same number from either rank
    spec.input = spec.output = std::span(values);
    spec.options.delivery = {Delivery::Kind::bounded, 1.0, kDeadline};
  }

  CallLedger& submit(Rank rank) {
    const bool replica = spec.kind == collective::OperationKind::replica_broadcast;
    const Call call{.kind = replica ? CallKind::replica_broadcast : CallKind::broadcast,
                    .spec = &spec};
    return *book.submit({}, rank, call);
  }
  void data(std::uint32_t call, std::uint32_t index, bool goes_on = false) {
    book.begin_datagram(1);
    book.on_data({}, 1, 0,
                 {.round = call,
                  .kind = wire::FlowKind::spread,
                  .index = {index},
                  .position = {index},
                  .flow_packets = kPackets,
                  .goes_on = goes_on},
                 {});
  }
  void end(std::uint32_t call) {
    book.begin_datagram(1);
    book.on_end(Instant{1}, 1, 0,
                {.round = call, .kind = wire::FlowKind::spread, .flow_packets = kPackets});
  }
  const FlowLedger& flow(CallLedger& call) { return call.ranks[1].flow(wire::FlowKind::spread, 0); }

  const Pair pair;
  LedgerBook book{pair.engines};
  std::vector<float> values = std::vector<float>(1000, 1.0f);  // three packets
  collective::OperationSpec spec;
};

TEST(LedgerBook, ReadsWhatWaitedByPlace) {
  TwoRanks ranks(collective::OperationKind::broadcast);
  CallLedger& first = ranks.submit(0);
  ranks.book.close(0, true);
  CallLedger& second = ranks.submit(0);
  for (std::uint32_t index = 0; index < 3; ++index) ranks.data(0, index);
  ranks.data(1, 2);  // takes the fourth place
  ranks.book.pumped(1);
  ranks.submit(1);
  EXPECT_EQ(ranks.flow(first).distinct, 3u);
  ranks.book.close(1, true);
  // Packets 0 and 1 take a place each. Packet 2 has a place already, and its second copy takes
  // none.
  for (std::uint32_t index = 0; index < 3; ++index) ranks.data(1, index);
  ranks.book.pumped(1);
  ranks.submit(1);
  EXPECT_EQ(ranks.flow(second).copies, 3u);
  // The call ends after two of the three packets. Packets that come before the book is asked must
  // not change that.
  ranks.data(1, 1);
  ASSERT_TRUE(ranks.book.take_back(1, 2));
  EXPECT_EQ(ranks.flow(second).copies, 2u);
  EXPECT_EQ(ranks.flow(second).distinct, 2u);
  EXPECT_FALSE(ranks.flow(second).seen.test(2)) << "which came first and was read last";
  EXPECT_FALSE(ranks.book.take_back(1, 3));  // the call was open when the first of them was read
}

TEST(LedgerBook, HeedsWhatALaterCopySays) {
  TwoRanks ranks(collective::OperationKind::broadcast);
  CallLedger& call = ranks.submit(0);
  ranks.submit(1);
  ranks.data(0, TwoRanks::kPackets - 1, /*goes_on=*/true);
  EXPECT_FALSE(ranks.flow(call).ended);
  ranks.data(0, TwoRanks::kPackets - 1);
  EXPECT_TRUE(ranks.flow(call).ended);
  EXPECT_EQ(ranks.flow(call).distinct, 1u);
}

TEST(LedgerBook, GivesPlacesOfASenderBack) {
  TwoRanks ranks(collective::OperationKind::broadcast);
  std::array<CallLedger*, 3> calls{};  // three packets of each call, for eight places
  for (std::uint32_t number = 0; number < calls.size(); ++number) {
    calls[number] = &ranks.submit(0);
    ranks.book.close(0, true);
    for (std::uint32_t index = 0; index < 3; ++index) ranks.data(number, index);
  }
  EXPECT_EQ(ranks.flow(*calls[2]).dropped_early, 1u);
  ranks.book.pumped(1);
  ranks.submit(1);
  EXPECT_EQ(ranks.flow(*calls[0]).copies, 3u);
  ranks.data(2, 2);
  EXPECT_EQ(ranks.flow(*calls[2]).dropped_early, 1u) << "those of the first call are free again";
}

// ---- I9 and I15

TEST(Departures, PromiseNothingWhoeverLeavesAtOnceOrHasServedForFourSeconds) {
  constexpr auto kCut = [](const Departures& departures, std::int64_t ms, StatusCode code) {
    const bool ok = code == StatusCode::kOk;
    return departures.may_have_cut(at_ms(ms), ok ? Status() : Status::error(code, "cut"));
  };
  const Pair pair;
  LedgerBook book(pair.engines);
  Check check = made();
  Departures departures(check, book, false, false);
  EXPECT_FALSE(kCut(departures, 9000, StatusCode::kPeerLost)) << "nobody leaves";
  departures.on_leave(at_ms(1000), 0, false);
  EXPECT_FALSE(kCut(departures, 4999, StatusCode::kPeerLost));
  EXPECT_TRUE(kCut(departures, 5000, StatusCode::kPeerLost));
  EXPECT_TRUE(kCut(departures, 5000, StatusCode::kOk));
  EXPECT_FALSE(kCut(departures, 5000, StatusCode::kDeadlineExceeded));
  departures.on_leave(at_ms(2000), 1, true);
  EXPECT_TRUE(kCut(departures, 2000, StatusCode::kPeerLost));
}

// ---- I6

// Returns the number of failed checks of ages after two broadcasts in a row. In the first no packet
// came. In the second all came after the END, one of them late. If `changed`, the rank holds other
// values than the owner sent.
std::uint64_t age_failures(bool changed) {
  TwoRanks ranks(collective::OperationKind::replica_broadcast);
  Check check = made();
  Agreement agreement(check, 2, 0, 1);
  const std::vector<float> held = ranks.values;
  for (std::uint32_t number = 0; number < 2; ++number) {
    ranks.submit(0);
    CallLedger& call = ranks.submit(1);
    if (number == 1 && changed) call.ranks[0].source.assign(ranks.values.size(), 2.0f);
    agreement.on_submit(1, call, held);
    CollectiveReport report;
    report.peers = {{.rank = 0, .late = number}};
    ranks.end(number);
    ranks.book.pumped(1);
    for (std::uint32_t index = 0; number == 1 && index < 3; ++index) ranks.data(number, index);
    agreement.on_done({}, 1, call, report, held);
    ranks.book.close(0, true);
    ranks.book.close(1, true);
  }
  return check.failures();
}

TEST(Agreement, BelievesABlockThatIsUnchangedAndMayBeLate) {
  EXPECT_EQ(age_failures(false), 0u);
  EXPECT_GT(age_failures(true), 0u);
}

// ---- I8

TEST(Credit, AllowsAWindowAboveTheLastReport) {
  const Pair pair;
  Check check = made();
  Credit credit(check, pair.engines);
  credit.on_data_sent({}, 0, 1, 16);
  EXPECT_EQ(check.failures(), 0u);
  credit.on_data_sent({}, 0, 1, 17);
  EXPECT_EQ(check.failures(), 1u);
  wire::Report report;
  report.largest_sequence = 4;
  credit.on_report(1, 0, report);  // the other direction
  credit.on_data_sent({}, 0, 1, 17);
  EXPECT_EQ(check.failures(), 2u);
  credit.on_report(0, 1, report);
  credit.on_data_sent({}, 0, 1, 20);
  EXPECT_EQ(check.failures(), 2u);
}

// ---- I10

CheckRecord biased_by(double shift) {
  Check check = made();
  Bias bias(check, 100);
  std::vector<double> reference(10'000, 1.0);
  std::vector<float> result(reference.size());
  for (std::uint32_t round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i < result.size(); ++i) {
      // Results are uniform within 1 of the reference, with a standard deviation of 0.58. The mean
      // of a packet of 100 elements has 0.058, and the mean of all 10^6 elements has 0.00058.
      const double noise = 2.0 * to_unit(keyed_hash(7, i, 0, round, 0)) - 1.0;
      result[i] = static_cast<float>(reference[i] + noise + shift);
    }
    bias.on_reduced(reference, result);
  }
  bias.finish();
  return check.record();
}

TEST(Bias, FindsAMeanErrorThatIsNotZero) {
  EXPECT_EQ(biased_by(0.0).verdict, Verdict::passed);
  EXPECT_EQ(biased_by(0.006).verdict, Verdict::failed);
}

TEST(Bias, IsNotJudgedFromAFewPackets) {
  Check check = made();
  Bias bias(check, 100);
  bias.on_reduced(std::vector<double>(100, 0.0), std::vector<float>(100, 1.0f));
  bias.finish();
  EXPECT_EQ(check.record().verdict, Verdict::not_applicable);
}

// ---- I12

TEST(SameTrace, ComparesTwoRuns) {
  RunRecord run{.seed = 3, .simulated_ns = 10, .events = 5, .trace_hash = 7};
  EXPECT_EQ(same_trace(run, run).verdict, Verdict::passed);
  RunRecord other = run;
  other.trace_hash = 8;
  EXPECT_EQ(same_trace(run, other).verdict, Verdict::failed);
}

// ---- what applies

TEST(NetworkTraits, KnowWhatKeepsTheOrder) {
  const auto keeps = [](const std::string& text) { return keeps_order(scenario_of(text)); };
  EXPECT_TRUE(keeps("link { delay_ms { fixed: 1 } loss { random { p: 0.1 } } }"));
  EXPECT_TRUE(keeps("link { delay_ms { normal { mean: 1 deviation: 1 } keep_order: true } }"));
  EXPECT_FALSE(keeps("link { delay_ms { normal { mean: 1 deviation: 1 } } }"));
  EXPECT_FALSE(keeps("link { reorder { p: 0.1 } }"));
  EXPECT_FALSE(keeps("operation { inject: \"loss=0.1\" }"));
}

// In seed 43432 of the swarm, all 39 good-byes of a rank were lost in a ring of 16 ranks whose hops
// lose 28.8 % each.
TEST(NetworkTraits, KnowWhereAllGoodbyesMayBeLost) {
  const auto loses = [](const std::string& text) { return may_lose_goodbyes(scenario_of(text)); };
  const std::string link = "link { loss { random { p: 0.288 } } }";
  EXPECT_TRUE(loses("ranks: 16 topology { ring {} } " + link));
  EXPECT_FALSE(loses("ranks: 4 topology { ring {} } " + link));
  EXPECT_FALSE(loses("ranks: 16 topology { mesh {} } " + link));
  EXPECT_FALSE(loses("ranks: 16 topology { ring {} }"));
  // In seed 37216, 93 good-byes and all answers were lost for a minute.
  EXPECT_TRUE(loses("ranks: 4 link { loss { bursts { p: 0.209 burst: 27 } } }"));
}

// In seed 38275 of the swarm, a burst took 43 datagrams in a row, all probes among them.
TEST(NetworkTraits, KnowWhatMaySilenceARank) {
  const auto silences = [](const std::string& text) {
    return may_silence(scenario_of("ranks: 3 " + text));
  };
  EXPECT_TRUE(silences("link { loss { gilbert_elliott { p: 0.036 r: 0.068 } } }"));
  EXPECT_TRUE(silences("link { loss { four_state { p13: 0.046 p31: 0.182 } } }"));
  EXPECT_TRUE(silences("link { loss { bursts { p: 0.1 burst: 20 } } }"));
  EXPECT_FALSE(silences("pause { rank: 1 for_ms: 100 }")) << "I18 knows who was stopped";
  EXPECT_FALSE(silences("link { loss { random { p: 0.1 } } } crash { rank: 1 }"));
}

TEST(NetworkTraits, KnowWhatIsUnbiased) {
  const auto fits = [](const std::string& operation, const std::string& link) {
    return is_unbiased(scenario_of("operation { " + operation + " } link { " + link + " }"));
  };
  const std::string random = "loss { random { p: 0.1 } }";
  EXPECT_TRUE(fits("estimator: horvitz_thompson", random));
  EXPECT_TRUE(fits("estimator: horvitz_thompson", "from: \"0\" " + random));
  EXPECT_TRUE(fits("estimator: stratified", random));
  EXPECT_FALSE(fits("estimator: stratified", "from: \"0\" " + random));
  EXPECT_FALSE(fits("estimator: ratio", random));
  EXPECT_FALSE(fits("estimator: zero_fill", random));
  EXPECT_FALSE(fits("estimator: augmented codec: \"int8\"", random));
  EXPECT_FALSE(fits("estimator: augmented", "loss { bursts { p: 0.1 burst: 4 } }"));
  EXPECT_FALSE(fits("estimator: augmented", "delay_ms { fixed: 1 }"));
}

TEST(Checkers, OfEndpointsWithoutContentsLookAtTheNetworkOnly) {
  const auto scenario = scenario_of("ranks: 2 contents: false");
  EventQueue queue;
  const Topology topology = Topology::make(scenario).value();
  const auto network = Network::make(topology, 1, queue, 1472).value();
  Checkers checkers(scenario, 1, {.links = topology.links()});
  const auto records = checkers.finish({}, *network, true);
  ASSERT_EQ(records.size(), 21u);
  for (const CheckRecord& record : records) {
    EXPECT_EQ(record.verdict, record.id == "i1" ? Verdict::passed : Verdict::not_applicable)
        << record.id;
    EXPECT_FALSE(record.title.empty());
  }
}

}  // namespace
}  // namespace leeway::sim
