#include "checker/checkers.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <optional>

#include "checker/agreement.h"
#include "checker/bias.h"
#include "checker/conservation.h"
#include "checker/credit.h"
#include "checker/deadlines.h"
#include "checker/ledger_book.h"
#include "checker/network_traits.h"
#include "checker/reduction_reference.h"
#include "checker/report_check.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

// Encoded contributions are encoded again in one packet of so many, by index: it costs as much as
// the first time.
constexpr std::uint32_t kEncodeEvery = 8;

// Rounds that a group may take to recover once faults are over.
constexpr std::uint32_t kRecoveryRounds = 3;

constexpr const char* kNoContents = "endpoints without contents";

std::string where(Instant now, std::uint32_t rank, const CallLedger& call) {
  return format_text("round %u, call %u (%s), rank %u, at %.6f ms", call.round, call.number,
                     to_string(call.kind), rank, static_cast<double>(now.ns) / 1e6);
}

std::span<const float> result_of(const Call& call) {
  return {static_cast<const float*>(call.spec->output.data), call.spec->output.count};
}

std::size_t packet_elements_of(const scenario::Scenario& scenario) {
  const auto format = codec::format_of(Codec::fp32, DataType::f32, codec::Purpose::sum);
  return format.elements_for(scenario.operation().datagram_bytes() - wire::kDataHeaderBytes);
}

// The checks in the order of their numbers.
enum Invariant : std::uint8_t { i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14 };

std::array<Check, 14> make_checks() {
  return {
      Check("i1",
            "conservation: sent + copied = delivered + lost + under way, per kind of traffic "
            "and per link, as counted and as observed"),
      Check("i2",
            "no datum is summed twice or into a wrong slot: contributions travel as the sender "
            "brought them, and results are no further than rounding from their sum"),
      Check("i3",
            "the report is exact: its rows equal what the network handed over, and a half "
            "settles without packets only for a reason"),
      Check("i4", "every call returns by its deadline + 1 ms, pauses apart"),
      Check("i5",
            "the owned shard equals, bit for bit, the reference reduction over the reported "
            "contributions"),
      Check("i6",
            "agreement: what arrived of a block is bitwise the same on all ranks, its owner "
            "included; parameters are at most age_max versions old"),
      Check("i7", "memory: no place for a datagram is held once nothing is under way"),
      Check("i8",
            "credit: data are sent only while fewer than a window of datagrams are "
            "unreported"),
      Check("i9",
            "liveness: three rounds after the last fault nothing is missing and no call "
            "fails"),
      Check("i10",
            "unbiased: the mean error of an unbiased estimator is within 5 standard errors of "
            "0"),
      Check("i11", "amplification is at most 3 before address validation"),
      Check("i12", "same seed, same trace"),
      Check("i13",
            "no state from strangers: exactly the datagrams with a wrong checksum, epoch or "
            "address are refused, and none that is right"),
      Check("i14", "a nonce is unique per key"),
  };
}

}  // namespace

struct Checkers::State final : PacketObserver {
  State(const scenario::Scenario& scenario, std::uint64_t seed, CheckerSetup setup_in);

  void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                 ByteSpan payload) override;
  void on_data_packet(Instant now, PacketStep step, const Packet& packet, ByteSpan payload);
  void on_data(Instant now, Rank rank, Rank from, const wire::DataHeader& header, ByteSpan payload);
  void check_payload(Instant now, Rank rank, Rank from, const CallLedger& call,
                     const wire::DataHeader& header, ByteSpan payload);
  void check_contents(Instant now, Rank rank, CallLedger& call, const Call& asked,
                      const CallResult& result);
  void check_reduction(Instant now, Rank rank, CallLedger& call, const Call& asked,
                       const CallResult& result);
  void check_contributors(Instant now, Rank rank, const CallLedger& call,
                          const CollectiveReport& report,
                          const ReductionReference::Outcome& outcome);
  void check_liveness(Instant now, Rank rank, const Call& call, const CallResult& result);
  void rule_out_contents();

  CheckerSetup setup;
  std::array<Check, 14> checks = make_checks();
  LedgerBook book;
  Conservation conservation{checks[i1]};
  Deadlines deadlines;
  std::optional<ReportCheck> reports;
  std::optional<ReductionReference> reference;
  std::optional<Agreement> agreement;
  std::optional<Credit> credit;
  Bias bias;
  bool all_reduce = false;
  bool keeps_datagrams = false;  // endpoints hold some back, or in sockets of paused ranks
  std::uint32_t reduced_round = UINT32_MAX;  // the last one that I10 took a result of
  std::uint32_t fault_free_round = UINT32_MAX;
  std::vector<std::uint64_t> refusable;  // by rank: datagrams that must be refused
  std::vector<float> values;
  std::vector<std::byte> encoded;
  std::vector<LinkCounters> links;
};

// ---- setting up ---------------------------------------------------------------------------------

Checkers::State::State(const scenario::Scenario& scenario, std::uint64_t seed,
                       CheckerSetup setup_in)
    : setup(std::move(setup_in)),
      book(setup.engines),
      deadlines(checks[i4], scenario.ranks()),
      bias(checks[i10], packet_elements_of(scenario)),
      all_reduce(scenario.operation().kind() == scenario::Operation::all_reduce),
      keeps_datagrams(scenario.operation().has_inject() || scenario.pause_size() > 0),
      refusable(setup.engines.size()) {
  for (const std::string& name : scenario.checkers().skip())
    checks[std::stoul(name.substr(1)) - 1].skip();
  checks[i11].rule_out("the core has no address validation yet");
  checks[i12].rule_out("a single run cannot tell; same_trace() compares two");
  checks[i14].rule_out("the core does not encrypt yet");
  checks[i9].rule_out("the run was not told of an end of its faults");
  if (!is_unbiased(scenario))
    checks[i10].rule_out("estimator, codec or losses do not promise a mean error of 0");
  const int size = book.size();
  if (size == 0) {
    rule_out_contents();
    return;
  }
  reports.emplace(checks[i3], book, keeps_order(scenario));
  reference.emplace(size, seed);
  agreement.emplace(checks[i6], size, seed, scenario.operation().replica().age_max());
  credit.emplace(checks[i8], setup.engines);
}

void Checkers::State::rule_out_contents() {
  for (const Invariant invariant : {i2, i3, i4, i5, i6, i7, i8, i9, i10, i13})
    checks[invariant].rule_out(kNoContents);
}

Checkers::Checkers(const scenario::Scenario& scenario, std::uint64_t seed, CheckerSetup setup)
    : state_(std::make_unique<State>(scenario, seed, std::move(setup))) {}

Checkers::~Checkers() = default;

PacketObserver* Checkers::packets() {
  return state_.get();
}

// ---- packets ------------------------------------------------------------------------------------

void Checkers::State::on_packet(Instant now, PacketStep step, LinkId, const Packet& packet,
                                ByteSpan payload) {
  conservation.on_packet(step, packet);
  if (packet.traffic == Traffic::data && book.size() > 0)
    on_data_packet(now, step, packet, payload);
}

void Checkers::State::on_data_packet(Instant now, PacketStep step, const Packet& packet,
                                     ByteSpan payload) {
  if (step == PacketStep::delivered) {
    if (packet.corrupt || packet.trimmed)
      reports->on_damaged(static_cast<Rank>(packet.from), static_cast<Rank>(packet.to));
    return;
  }
  if (step != PacketStep::sent && !is_loss(step)) return;
  if (packet.trimmed)  // and then lost: it does not say any more what it was
    return reports->on_damaged(static_cast<Rank>(packet.from), static_cast<Rank>(packet.to));
  wire::Prefix prefix;
  if (wire::peek_prefix(payload, prefix) != wire::Refusal::none) return;
  if (step == PacketStep::sent)
    return credit->on_data_sent(now, prefix.source, prefix.destination, prefix.sequence);
  wire::DataHeader header;
  ByteSpan contents;
  if (wire::decode_data(payload, header, contents) == wire::Refusal::none)
    book.on_lost(prefix.source, prefix.destination, header);
}

void Checkers::on_datagram(Instant now, std::uint32_t rank, std::uint32_t from, ByteSpan datagram) {
  State& state = *state_;
  const auto self = static_cast<Rank>(rank);
  const auto peer = static_cast<Rank>(from);
  state.book.begin_datagram(self);
  const auto& config = state.book.engine(self).endpoint().config();
  const wire::Expectation expect{config.epoch, self, config.size};
  wire::Prefix prefix;
  wire::Refusal refusal = wire::decode_prefix(datagram, &expect, prefix);
  if (refusal == wire::Refusal::none && prefix.source != from) refusal = wire::Refusal::misrouted;
  if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::data) {
    wire::DataHeader header;
    ByteSpan payload;
    refusal = wire::decode_data(datagram, header, payload);
    if (refusal == wire::Refusal::none) return state.on_data(now, self, peer, header, payload);
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::report) {
    wire::Report report;
    refusal = wire::decode_report(datagram, report);
    if (refusal == wire::Refusal::none) {
      state.credit->on_report(self, peer, report);
      return state.book.on_report(self, peer, report);
    }
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::end) {
    wire::End end;
    refusal = wire::decode_end(datagram, end);
    if (refusal == wire::Refusal::none) return state.book.on_end(self, peer, end);
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::goodbye) {
    return state.book.on_goodbye(self, peer);
  }
  if (refusal == wire::Refusal::none) return;
  ++state.refusable[rank];
  state.reports->on_damaged(peer, self);
}

void Checkers::State::on_data(Instant now, Rank rank, Rank from, const wire::DataHeader& header,
                              ByteSpan payload) {
  const LedgerBook::Arrival arrival = book.on_data(now, rank, from, header, payload);
  if (arrival.call == nullptr || !arrival.first || header.kind != FlowKind::reduce) return;
  check_payload(now, rank, from, *arrival.call, header, payload);
}

// I2, on the way: what arrives under an address is what its sender brought there.
void Checkers::State::check_payload(Instant now, Rank rank, Rank from, const CallLedger& call,
                                    const wire::DataHeader& header, ByteSpan payload) {
  const codec::Format& format = call.plan.reduce_format();
  if (!format.identity() && header.index % kEncodeEvery != call.number % kEncodeEvery) return;
  const FlowPlan plan = call.plan.reduce_to(rank);
  const std::size_t offset = plan.grid.packet_offset(header.index);
  const std::size_t elements = plan.grid.packet_elements(header.index);
  const RankLedger& sender = call.ranks[from];
  bool good = sender.submitted && payload.size() == format.encoded_bytes(elements);
  if (good) {
    const auto brought = std::span(sender.source).subspan(plan.source + offset, elements);
    ByteSpan expected = std::as_bytes(brought);
    if (!format.identity()) {
      encoded.resize(payload.size());
      codec::encode(
          format, brought,
          {book.engine(rank).endpoint().config().seed, call.number, from, plan.position + offset},
          encoded);
      expected = encoded;
    }
    good = std::memcmp(expected.data(), payload.data(), payload.size()) == 0;
  }
  checks[i2].expect(good, [&] {
    return where(now, rank, call) +
           format_text(": packet %u from rank %u is not what it brought there", header.index, from);
  });
}

// ---- calls --------------------------------------------------------------------------------------

void Checkers::on_submit(Instant now, std::uint32_t rank, const Call& call) {
  State& state = *state_;
  state.deadlines.on_submit(now, rank, call.spec->options.delivery.deadline);
  CallLedger* const ledger = state.book.submit(now, static_cast<Rank>(rank), call);
  if (ledger != nullptr && ledger->plan.covered())
    state.agreement->on_submit(static_cast<Rank>(rank), *ledger, result_of(call));
}

void Checkers::on_done(Instant now, std::uint32_t rank, const Call& call,
                       const CallResult& result) {
  State& state = *state_;
  const auto self = static_cast<Rank>(rank);
  state.deadlines.on_done(now, rank);
  state.check_liveness(now, self, call, result);
  const StatusCode code = result.status.code();
  if (code == StatusCode::kInvalidArgument || code == StatusCode::kUnsupported)
    return state.book.withdraw(self);
  CallLedger* const ledger = state.book.open_call(self);
  if (ledger != nullptr && ledger->plan.covered() && ledger->ranks[self].submitted)
    state.check_contents(now, self, *ledger, call, result);
  state.book.close(self);
}

void Checkers::State::check_contents(Instant now, Rank rank, CallLedger& call, const Call& asked,
                                     const CallResult& result) {
  reports->on_done(now, rank, call, result);
  if (!result.status.ok()) return agreement->forget(rank);
  if (call.plan.reduces()) check_reduction(now, rank, call, asked, result);
  agreement->on_done(now, rank, call, *result.report, result_of(asked));
}

void Checkers::State::check_reduction(Instant now, Rank rank, CallLedger& call, const Call& asked,
                                      const CallResult& result) {
  const auto outcome = reference->check(call, rank, *result.report, result_of(asked));
  reference->learn(call, rank);
  if (outcome.packets == 0) return;
  const auto text = [&](std::uint64_t packets) {
    return where(now, rank, call) +
           format_text(": %" PRIu64 " of %" PRIu64
                       " packets of the shard are wrong, first %u: %.9g, expected %.9g",
                       packets, outcome.packets, outcome.first_wrong, outcome.found,
                       outcome.expected);
  };
  checks[i2].expect(outcome.far == 0, [&] { return text(outcome.far); });
  checks[i5].expect(outcome.wrong == 0, [&] { return text(outcome.wrong); });
  if (outcome.resolved) check_contributors(now, rank, call, *result.report, outcome);
}

// I3: who contributed, by the reference's count.
void Checkers::State::check_contributors(Instant now, Rank rank, const CallLedger& call,
                                         const CollectiveReport& report,
                                         const ReductionReference::Outcome& outcome) {
  const ContributorStats& told = report.contributors;
  std::uint64_t packets = 0;
  std::uint64_t contributions = 0;
  std::uint32_t least = static_cast<std::uint32_t>(book.size());
  for (std::size_t k = outcome.histogram.size(); k-- > 0;) {
    packets += outcome.histogram[k];
    contributions += k * outcome.histogram[k];
    if (outcome.histogram[k] > 0) least = static_cast<std::uint32_t>(k);
  }
  const double mean = packets == 0
                          ? book.size()
                          : static_cast<double>(contributions) / static_cast<double>(packets);
  const bool good = told.histogram == outcome.histogram && told.min == least && told.mean == mean &&
                    report.elements_untouched == outcome.untouched;
  checks[i3].expect(good, [&] {
    return where(now, rank, call) +
           format_text(": contributors at least %u, %.9g on average, %" PRIu64
                       " elements without any; counted %u, %.9g, %" PRIu64,
                       told.min, told.mean, report.elements_untouched, least, mean,
                       outcome.untouched);
  });
}

void Checkers::State::check_liveness(Instant now, Rank rank, const Call& call,
                                     const CallResult& result) {
  if (fault_free_round == UINT32_MAX || call.round < fault_free_round + kRecoveryRounds) return;
  const bool complete = result.status.ok() && result.arrived == result.expected;
  checks[i9].expect(complete, [&] {
    return format_text("round %u, rank %u, at %.6f ms: %" PRIu64 " of %" PRIu64
                       " packets arrived, status %s; faults were over in round %u",
                       call.round, rank, static_cast<double>(now.ns) / 1e6, result.arrived,
                       result.expected, result.status.ok() ? "ok" : result.status.c_str(),
                       fault_free_round);
  });
}

void Checkers::on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) {
  State& state = *state_;
  state.book.pumped(static_cast<Rank>(rank));
  const auto& counters = engine.endpoint().counters();
  const std::uint64_t refused =
      std::accumulate(counters.refused.begin(), counters.refused.end(), std::uint64_t{0});
  const bool consistent = counters.refused_plan == 0 || state.book.disagreed();
  state.checks[i13].expect(refused == state.refusable[rank] && consistent, [&] {
    return format_text("rank %u, at %.6f ms: %" PRIu64 " datagrams refused and %" PRIu64
                       " that contradict the call, but %" PRIu64 " were wrong",
                       rank, static_cast<double>(now.ns) / 1e6, refused, counters.refused_plan,
                       state.refusable[rank]);
  });
}

// ---- the run ------------------------------------------------------------------------------------

void Checkers::on_pause(Instant now, std::uint32_t rank) {
  state_->deadlines.on_pause(now, rank);
}

void Checkers::on_resume(Instant now, std::uint32_t rank) {
  state_->deadlines.on_resume(now, rank);
}

void Checkers::on_death(std::uint32_t rank) {
  state_->deadlines.on_kill(rank);
  if (state_->book.size() > 0) state_->book.kill(static_cast<Rank>(rank));
}

void Checkers::on_faults_over(std::uint32_t first_round) {
  state_->fault_free_round = first_round;
  state_->checks[i9].rule_in();
}

void Checkers::on_round_end(Instant now, std::uint32_t, const Network& network) {
  if (!state_->checks[i1].on()) return;
  Conservation::Counts under_way{};
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind)
    under_way[kind] = network.under_way(static_cast<Traffic>(kind));
  state_->conservation.check(now, network.counters(), under_way);
}

void Checkers::on_reduced(std::uint32_t round, std::uint32_t, std::span<const double> reference,
                          std::span<const float> result) {
  State& state = *state_;
  if (!state.checks[i10].on()) return;
  // All ranks of an all_reduce hold the same result: the first one speaks for them.
  if (state.all_reduce && std::exchange(state.reduced_round, round) == round) return;
  state.bias.on_reduced(reference, result);
}

std::vector<CheckRecord> Checkers::finish(Instant now, const Network& network,
                                          bool endpoints_idle) {
  State& state = *state_;
  on_round_end(now, 0, network);
  Conservation::Counts under_way{};
  std::uint64_t all_under_way = 0;
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    under_way[kind] = network.under_way(static_cast<Traffic>(kind));
    all_under_way += under_way[kind];
  }
  for (std::size_t link = 0; link < state.setup.links; ++link)
    state.links.push_back(network.link_counters(static_cast<LinkId>(link)));
  state.conservation.check_links(now, state.links, under_way);
  state.deadlines.finish(now);
  state.bias.finish();
  if (endpoints_idle && all_under_way == 0 && !state.keeps_datagrams) {
    const std::size_t held = const_cast<Network&>(network).payloads().held();
    state.checks[i7].expect(held == 0, [&] {
      return format_text("at %.6f ms: %zu places are held and no packet is under way",
                         static_cast<double>(now.ns) / 1e6, held);
    });
  } else {
    state.checks[i7].rule_out(
        "the run ended with datagrams on their way, in a socket or held back");
  }
  std::vector<CheckRecord> records;
  for (const Check& check : state.checks) records.push_back(check.record());
  return records;
}

CheckRecord same_trace(const RunRecord& first, const RunRecord& second) {
  Check check("i12", "same seed, same trace");
  check.expect(first.seed == second.seed && first.trace_hash == second.trace_hash &&
                   first.events == second.events && first.simulated_ns == second.simulated_ns,
               [&] {
                 return format_text("seed %" PRIu64 ": trace %016" PRIx64 " after %" PRIu64
                                    " events, then %016" PRIx64 " after %" PRIu64,
                                    first.seed, first.trace_hash, first.events, second.trace_hash,
                                    second.events);
               });
  return check.record();
}

}  // namespace leeway::sim
