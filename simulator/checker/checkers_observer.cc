// The part of Checkers that takes in events of a run: packets, calls, refused datagrams.
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <numeric>

#include "checker/checkers_state.h"
#include "sealing/null_cipher.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

// Encoded contributions are checked by encoding them again. That costs as much as the run's own
// encoding, so each call checks one packet in kEncodeEvery, by index.
constexpr std::uint32_t kEncodeEvery = 8;

std::span<const float> result_of(const Call& call) {
  return {static_cast<const float*>(call.spec->output.data), call.spec->output.count};
}

}  // namespace

// ---- packets ------------------------------------------------------------------------------------

void Checkers::State::on_packet(Instant now, PacketStep step, LinkId, const Packet& packet,
                                ByteSpan payload) {
  if (is_first()) conservation.on_packet(step, packet);
  if (packet.traffic == Traffic::data && book.size() > 0)
    on_data_packet(now, step, packet, payload);
}

void Checkers::State::on_data_packet(Instant now, PacketStep step, const Packet& packet,
                                     ByteSpan datagram) {
  if (step == PacketStep::delivered) {
    if (packet.corrupt || packet.trimmed) on_damaged(packet.from, packet.to);
    return;
  }
  if (step != PacketStep::sent && !is_loss(step)) return;
  if (packet.trimmed)  // a packet that was trimmed and then lost no longer shows its type
    return on_damaged(packet.from, packet.to);
  const ByteSpan payload = contents_of(datagram);
  wire::Prefix prefix;
  if (wire::peek_prefix(payload, prefix) != wire::Refusal::none) return;
  if (step == PacketStep::sent) {
    if (looks_at_credit(packet))
      credit->on_data_sent(
          now, static_cast<Rank>(packet.from),
          prefix.destination == kEveryRank ? kEveryRank : static_cast<Rank>(packet.to),
          prefix.sequence);
    return;
  }
  const auto to = rank_of(packet.to);
  if (prefix.epoch != setup.epoch || !to) return;
  wire::DataHeader header;
  ByteSpan contents;
  if (wire::decode_data(payload, header, contents) == wire::Refusal::none)
    book.on_lost(prefix.source, *to, header);
}

// Returns true if these checkers check credit on the packet's lane. Only one communicator per lane
// does, because all share the lane's paths. If nothing is sealed, packet.word is the lane.
bool Checkers::State::looks_at_credit(const Packet& packet) const {
  if (setup.lane > 0) return packet.word == setup.lane;
  return is_first() && (!has_lanes || packet.word == 0);
}

// A damaged datagram does not show its flow, so missing packets from `from` to `to` can no longer
// be counted.
void Checkers::State::on_damaged(std::uint32_t from, std::uint32_t to) {
  const auto sender = rank_of(from);
  const auto receiver = rank_of(to);
  if (sender && receiver) reports->on_damaged(*sender, *receiver);
}

void Checkers::on_datagram(Instant now, std::uint32_t rank, std::uint32_t from, ByteSpan datagram) {
  State& state = *state_;
  const auto self = static_cast<Rank>(rank);
  const auto peer = static_cast<Rank>(from);
  state.book.begin_datagram(self);
  const protocol::Endpoint& endpoint = state.book.engine(self).endpoint();
  const auto& config = endpoint.config();
  const wire::Expectation expect{config.epoch, self, config.size};
  wire::Prefix prefix;
  wire::Refusal refusal = wire::decode_prefix(datagram, &expect, prefix);
  if (refusal == wire::Refusal::none && prefix.source != from) refusal = wire::Refusal::misrouted;
  if (refusal == wire::Refusal::none && endpoint.link(peer).dead) return;  // WIRE 6.7: not used
  if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::data) {
    wire::DataHeader header;
    ByteSpan payload;
    refusal = wire::decode_data(datagram, header, payload);
    if (refusal == wire::Refusal::none) return state.on_data(now, self, peer, header, payload);
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::report) {
    wire::Report report;
    refusal = wire::decode_report(datagram, report);
    if (refusal == wire::Refusal::none) {
      state.credit->on_report(state.process_of(self), state.process_of(peer), report);
      return state.book.on_report(now, self, peer, report);
    }
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::end) {
    wire::End end;
    refusal = wire::decode_end(datagram, end);
    if (refusal == wire::Refusal::none) return state.book.on_end(now, self, peer, end);
  } else if (refusal == wire::Refusal::none && prefix.type == wire::PacketType::goodbye) {
    state.departures.on_goodbye(now, self, peer);
    return state.book.on_goodbye(now, self, peer);
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

// Returns true if the sender, whose call works in place, may hold the owner's result where its
// contribution was. The owner has then settled this packet and ignores what the sender still sends,
// which I5 checks.
bool Checkers::State::is_overwritten(Rank owner, Rank from, const CallLedger& call,
                                     PacketIndex index) const {
  if (!call.ranks[from].in_place || !call.plan.spreads()) return false;
  const schedule::PacketGrid reduced = call.plan.reduce_to(owner).grid;
  const std::size_t first = reduced.packet_offset(index);
  const std::size_t last = first + reduced.packet_elements(index) - 1;
  const std::size_t per_packet = call.plan.spread(owner, from).grid.elements_per_packet();
  const FlowLedger& results = call.ranks[from].flow(FlowKind::spread, owner);
  for (std::size_t packet = first / per_packet; packet <= last / per_packet; ++packet) {
    if (results.seen.test(packet)) return true;
  }
  return false;
}

// Checks I2 for a packet under way: it must carry the elements that its sender contributed at its
// index.
void Checkers::State::check_payload(Instant now, Rank rank, Rank from, const CallLedger& call,
                                    const wire::DataHeader& header, ByteSpan payload) {
  if (is_overwritten(rank, from, call, header.index)) return;
  const codec::Format& format = call.plan.reduce_format();
  if (!format.identity() && header.index.value % kEncodeEvery != call.number % kEncodeEvery) return;
  const ByteSpan expected = call.ranks[from].submitted
                                ? call.brought(rank, from, header.index.value,
                                               book.engine(rank).endpoint().config().seed, encoded)
                                : ByteSpan();
  const bool good = !expected.empty() &&
                    std::equal(expected.begin(), expected.end(), payload.begin(), payload.end());
  checks[i2].expect(good, [&] {
    return where(now, rank, call) +
           format_text(": packet %u from rank %u is not what it brought there", header.index.value,
                       from);
  });
}

// ---- calls --------------------------------------------------------------------------------------

namespace {

// Returns the number of operations in a call. An exchange is one operation, and each of its
// messages to or from another rank is one more.
std::size_t operations_of(Rank rank, const Call& messages) {
  if (messages.spec == nullptr) return messages.messages.size();
  const auto with_others = [&](const collective::OperationSpec& spec) { return spec.peer != rank; };
  return 1 + static_cast<std::size_t>(
                 std::count_if(messages.messages.begin(), messages.messages.end(), with_others));
}

}  // namespace

void Checkers::on_submit(Instant now, std::uint32_t rank, const Call& call) {
  State& state = *state_;
  if (call.kind == CallKind::messages) {
    if (!call.messages.empty())
      state.deadlines.on_submit(now, rank, call.messages[0].options.delivery.deadline);
    state.book.on_messages(static_cast<Rank>(rank), operations_of(static_cast<Rank>(rank), call));
    return state.messages.on_submit(static_cast<Rank>(rank), call);
  }
  state.deadlines.on_submit(now, rank, call.spec->options.delivery.deadline);
  state.learn_deaths(now, static_cast<Rank>(rank));
  CallLedger* const ledger = state.book.submit(now, static_cast<Rank>(rank), call);
  if (ledger != nullptr && ledger->plan.covered())
    state.agreement->on_submit(static_cast<Rank>(rank), *ledger, result_of(call));
}

void Checkers::on_done(Instant now, std::uint32_t rank, const Call& call,
                       const CallResult& result) {
  State& state = *state_;
  const auto self = static_cast<Rank>(rank);
  state.deadlines.on_done(now, rank);
  state.learn_deaths(now, self);
  if (call.spec != nullptr && call.spec->forfeit != nullptr)
    return state.check_forfeit(now, self, call, result);
  state.check_liveness(now, self, call, result);
  state.look_whether_told(now, self, call, result);
  if (call.kind == CallKind::messages) return state.messages.on_done(now, self, call, result);
  const StatusCode code = result.status.code();
  if (code == StatusCode::kInvalidArgument || code == StatusCode::kUnsupported)
    return state.book.close(self, false);
  CallLedger* const ledger = state.book.open_call(self);
  if (ledger != nullptr && ledger->plan.covered() && ledger->ranks[self].submitted)
    state.check_contents(now, self, *ledger, call, result);
  state.book.close(self, result.status.ok());
}

// Checks a call whose rank had given it up at submission. The call must fail with the given status
// and send nothing.
void Checkers::State::check_forfeit(Instant now, Rank rank, const Call& call,
                                    const CallResult& result) {
  const Status& told = *call.spec->forfeit;
  checks[i3].expect((result.status.code() == told.code() ||
                     !book.engine(rank).endpoint().liveness().given_up().ok()) &&
                        result.report->bytes_sent == 0,
                    [&] {
                      return format_text(
                                 "round %u, rank %u, at %.6f ms: a forfeited call sent %" PRIu64
                                 " bytes and ended with status ",
                                 call.round, rank, static_cast<double>(now.ns) / 1e6,
                                 result.report->bytes_sent) +
                             (result.status.ok() ? "ok" : result.status.c_str());
                    });
  book.close(rank, false);
}

// For each peer that the rank has given up, notes that the peer has left the rank's calls.
void Checkers::State::learn_deaths(Instant now, Rank rank) {
  if (book.size() == 0) return;
  const protocol::Endpoint& endpoint = setup.engines[rank]->endpoint();
  for (Rank peer = 0; peer < setup.engines.size(); ++peer) {
    const protocol::Link& link = endpoint.link(peer);
    if (peer == rank || (!link.dead && !link.gave_us_up)) continue;
    Instant& from = given_up_from[std::size_t{rank} * setup.engines.size() + peer];
    if (link.dead) from = std::min(from, now);
    departures.on_goodbye(now, rank, peer);
    book.on_goodbye(now, rank, peer);
  }
}

void Checkers::State::check_contents(Instant now, Rank rank, CallLedger& call, const Call& asked,
                                     const CallResult& result) {
  reports->on_done(now, rank, call, result);
  if (!call.ranks[rank].opened) return agreement->forget(rank);
  departures.on_done(now, rank, call, result);
  if (call.plan.reduces())
    use.on_done(now, rank, call, result, asked.spec->options.confirm_use && !call.plan.exact());
  if (!has_result(result)) return agreement->forget(rank);
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
  coverage.on_reduced(call, rank, *result.report, result_of(asked));
}

// Checks I3: the reported contributors must be those that the reference counted.
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
                    report.elements_untouched == outcome.untouched &&
                    report.non_finite == outcome.non_finite;
  checks[i3].expect(good, [&] {
    return where(now, rank, call) +
           format_text(": contributors at least %u, %.9g on average, %" PRIu64
                       " elements without any, %" PRIu64
                       " contributions not finite; counted %u, %.9g, %" PRIu64 ", %" PRIu64,
                       told.min, told.mean, report.elements_untouched, report.non_finite, least,
                       mean, outcome.untouched, outcome.non_finite);
  });
}

void Checkers::State::check_liveness(Instant now, Rank rank, const Call& call,
                                     const CallResult& result) {
  if (fault_free_round == UINT32_MAX || call.round < fault_free_round + recovery_rounds) return;
  const bool complete = result.status.ok() && result.arrived == result.expected;
  // A call that the rank itself cancelled may be incomplete.
  if (result.status.code() == StatusCode::kCancelled) return;
  if (!complete && departures.may_have_cut(now, result.status)) return;  // I15 judges that
  checks[i9].expect(complete, [&] {
    return format_text("round %u, rank %u, at %.6f ms: %" PRIu64 " of %" PRIu64
                       " packets arrived, status %s; faults were over in round %u",
                       call.round, rank, static_cast<double>(now.ns) / 1e6, result.arrived,
                       result.expected, result.status.ok() ? "ok" : result.status.c_str(),
                       fault_free_round);
  });
}

void Checkers::on_submit_whole(Instant now, std::uint32_t rank, const Call& call) {
  state_->whole->on_submit(now, rank, call);
}

void Checkers::on_done_whole(Instant now, std::uint32_t rank, const Call& call,
                             const CallResult& result) {
  state_->check_liveness(now, static_cast<Rank>(rank), call, result);
  state_->whole->on_done(now, rank, call, result);
}

void Checkers::on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) {
  State& state = *state_;
  state.book.pumped(static_cast<Rank>(rank));
  state.departures.on_pumped(static_cast<Rank>(rank));
  state.look_for_untold_deaths(now, static_cast<Rank>(rank), engine.endpoint());
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
  if (state.strays.empty()) return;
  const auto& unheard = state.setup.nodes[rank]->refused();
  const std::uint64_t unread = std::accumulate(unheard.begin(), unheard.end(), std::uint64_t{0});
  state.checks[i13].expect(unread == state.strays[rank], [&] {
    return format_text("process %u, at %.6f ms: %" PRIu64 " datagrams reached no member; %" PRIu64
                       " name none",
                       rank, static_cast<double>(now.ns) / 1e6, unread, state.strays[rank]);
  });
}

}  // namespace leeway::sim
