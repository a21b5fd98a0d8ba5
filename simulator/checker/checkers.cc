#include "checker/checkers.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "checker/checkers_state.h"
#include "checker/network_traits.h"

namespace leeway::sim {
namespace {

// Rounds that a group may take to recover once faults are over.
constexpr std::uint32_t kRecoveryRounds = 3;

// A rank that another rank gave up must be told within this time if its call lasts that long.
// Control datagrams without an answer are repeated every second, so there are several tries.
constexpr Duration kToldWithin = std::chrono::seconds(10);

bool is_among_all(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
         kind == CallKind::all_gather || kind == CallKind::all_to_all ||
         kind == CallKind::barrier || kind == CallKind::split;
}

constexpr const char* kNoContents = "endpoints without contents";

const scenario::Scenario& network_of(const scenario::Scenario& own, const CheckerSetup& setup) {
  return setup.network == nullptr ? own : *setup.network;
}

std::size_t packet_elements_of(const scenario::Scenario& scenario) {
  const auto format = codec::format_of(Codec::fp32, DataType::f32, codec::Purpose::sum);
  return format.elements_for(scenario.operation().datagram_bytes() - wire::kDataHeaderBytes);
}

std::array<Check, 21> make_checks() {
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
      Check("i15",
            "leaving: a rank has left within its bound, no exact call fails because a peer left "
            "too early, and nobody waits for a rank that left"),
      Check("i16",
            "messages arrive as they were sent, the n-th receive of a pair as its n-th send"),
      Check("i17",
            "what is told about the use of contributions is true, and every owner is given the "
            "weight that was meant for it"),
      Check("i18", "no process that lives is taken for dead, where nothing cuts it off for long"),
      Check("i19",
            "abort: what is open fails at once with kCancelled, and nobody touches its buffers "
            "any more"),
      Check("i20", "no call returns an error"),
      Check("i21", "the mean square error that reports predict is the one that results have"),
  };
}

}  // namespace

// ---- setting up ---------------------------------------------------------------------------------

Checkers::State::State(const scenario::Scenario& scenario, std::uint64_t seed,
                       CheckerSetup setup_in)
    : setup(std::move(setup_in)),
      checks(make_checks()),
      book(setup.engines),
      deadlines(checks[i4], scenario.ranks()),
      departures(checks[i15], book, network_of(scenario, setup).pause_size() > 0,
                 has_outages(network_of(scenario, setup)) ||
                     may_lose_goodbyes(network_of(scenario, setup))),
      bias(checks[i10], packet_elements_of(scenario)),
      all_reduce(scenario.operation().kind() == scenario::Operation::all_reduce),
      keeps_datagrams(scenario.operation().has_inject() || scenario.pause_size() > 0),
      refusable(setup.engines.size()),
      strays(setup.nodes.size()),
      has_lanes(network_of(scenario, setup).operation().lanes() > 1) {
  for (const std::string& name : scenario.checkers().skip())
    checks[std::stoul(name.substr(1)) - 1].skip();
  if (!scenario.has_sealing()) checks[i11].rule_out("nothing is sealed: addresses do not change");
  checks[i12].rule_out("a single run cannot tell; same_trace() compares two");
  checks[i14].rule_out("the core does not encrypt yet");
  checks[i9].rule_out("the run was not told of an end of its faults");
  // If only few ranks own packets of a call, the ranks take turns as owners. So after a rank's
  // address changed, a peer may send nothing to that rank until it owns packets again.
  recovery_rounds = scenario.address_change_size() > 0
                        ? std::max(kRecoveryRounds, std::uint32_t{scenario.ranks()})
                        : kRecoveryRounds;
  if (!is_unbiased(scenario))
    checks[i10].rule_out("estimator, codec or losses do not promise a mean error of 0");
  if (!has_alike_contributions(scenario))
    checks[i21].rule_out("contributions differ by rank, or are not encoded without bias");
  crashed.resize(scenario.ranks());
  stops.resize(scenario.ranks());
  given_up_from.assign(std::size_t{scenario.ranks()} * scenario.ranks(),
                       Instant::infinite_future());
  if (scenario.operation().peer_timeout_ms() == 0)
    checks[i18].rule_out("nobody is ever taken for dead");
  if (may_silence(network_of(scenario, setup)))
    checks[i18].rule_out("a rank may be silent for as long as the peer time-out though it lives");
  const int size = book.size();
  if (size == 0) {
    rule_out_contents();
    return;
  }
  reports.emplace(checks[i3], book, keeps_order(network_of(scenario, setup)));
  reference.emplace(size, seed);
  agreement.emplace(checks[i6], size, seed, scenario.operation().replica().age_max());
  if (is_first()) own_credit.emplace(checks[i8], setup.engines);
  credit = is_first() ? &*own_credit : setup.credit;
  const std::uint32_t site_ranks = scenario.operation().site_ranks();
  if (is_first() && (site_ranks > 0 || scenario.operation().lanes() > 1))
    whole.emplace(SiteCheck::Checks{checks[i2], checks[i3], checks[i4], checks[i6]},
                  scenario.ranks(), site_ranks == 0 ? 0 : scenario.ranks() / site_ranks);
  if (is_first()) return;
  for (const Invariant invariant : {i1, i7, i8})
    checks[invariant].rule_out("the first communicator's checkers look at it for all");
}

void Checkers::State::rule_out_contents() {
  for (const Invariant invariant :
       {i2, i3, i4, i5, i6, i7, i8, i9, i10, i13, i15, i16, i17, i18, i19, i21})
    checks[invariant].rule_out(kNoContents);
}

Checkers::Checkers(const scenario::Scenario& scenario, std::uint64_t seed, CheckerSetup setup)
    : state_(std::make_unique<State>(scenario, seed, std::move(setup))) {}

Checkers::~Checkers() = default;

PacketObserver* Checkers::packets() {
  return state_.get();
}

std::optional<Rank> Checkers::State::rank_of(std::uint32_t process) const {
  if (is_first()) return static_cast<Rank>(process);
  const auto at = std::find(setup.processes.begin(), setup.processes.end(), process);
  if (at == setup.processes.end()) return std::nullopt;
  return static_cast<Rank>(at - setup.processes.begin());
}

Credit* Checkers::credit() {
  return state_->credit;
}

std::unique_ptr<Credit> Checkers::credit_of_lane() {
  return std::make_unique<Credit>(state_->checks[i8], state_->setup.engines);
}

void Checkers::on_open(std::uint32_t rank, const collective::Engine& engine) {
  state_->setup.engines[rank] = &engine;
  state_->book.set_engine(static_cast<Rank>(rank), engine);
}

void Checkers::on_stray(Instant, std::uint32_t process) {
  if (!state_->strays.empty()) ++state_->strays[process];
}

void Checkers::on_lost(std::uint32_t rank, std::uint32_t from) {
  state_->reports->on_damaged(static_cast<Rank>(from), static_cast<Rank>(rank));
}

// ---- the run ------------------------------------------------------------------------------------

void Checkers::on_pause(Instant now, std::uint32_t rank) {
  if (!state_->stops[rank].since) state_->stops[rank].since = now;
  state_->deadlines.on_pause(now, rank);
  if (state_->whole) state_->whole->on_pause(now, rank);
  if (state_->book.size() > 0) state_->departures.on_pause(now, static_cast<Rank>(rank));
}

void Checkers::on_resume(Instant now, std::uint32_t rank) {
  State::Stop& stop = state_->stops[rank];
  if (stop.since) stop.longest = std::max(stop.longest, now - *stop.since);
  stop.since.reset();
  state_->deadlines.on_resume(now, rank);
  if (state_->whole) state_->whole->on_resume(now, rank);
  if (state_->book.size() > 0) state_->departures.on_resume(now, static_cast<Rank>(rank));
}

void Checkers::on_death(std::uint32_t rank) {
  state_->crashed[rank] = true;
  state_->deadlines.on_kill(rank);
  if (state_->whole) state_->whole->on_death(rank);
  if (state_->book.size() > 0) state_->book.kill(static_cast<Rank>(rank));
}

void Checkers::on_leave(Instant now, std::uint32_t rank, bool at_once) {
  state_->crashed[rank] = true;
  state_->departures.on_leave(now, static_cast<Rank>(rank), at_once);
  state_->book.kill(static_cast<Rank>(rank));
}

void Checkers::on_left(Instant now, std::uint32_t rank) {
  state_->departures.on_left(now, static_cast<Rank>(rank));
}

void Checkers::on_abort(Instant now, std::uint32_t rank, bool failed) {
  state_->checks[i19].expect(failed, [&] {
    return format_text("rank %u, at %.6f ms: its open call has not failed with kCancelled", rank,
                       static_cast<double>(now.ns) / 1e6);
  });
  on_leave(now, rank, true);
  state_->deadlines.on_kill(rank);
}

void Checkers::on_aborted_buffers(std::uint32_t rank, bool untouched) {
  state_->checks[i19].expect(
      untouched, [&] { return format_text("rank %u: a buffer changed after the abort", rank); });
}

void Checkers::on_returned(Instant now, std::uint32_t rank, std::uint32_t round, CallKind kind,
                           const Status& status) {
  state_->checks[i20].expect(status.ok(), [&] {
    return format_text("at %.6f ms: rank %u, round %u, %s: %s", static_cast<double>(now.ns) / 1e6,
                       rank, round, to_string(kind), status.c_str());
  });
}

void Checkers::on_split(Instant now, std::uint32_t rank, bool good) {
  state_->checks[i6].expect(good, [&] {
    return format_text("rank %u, at %.6f ms: was told other colors or keys than were given", rank,
                       static_cast<double>(now.ns) / 1e6);
  });
}

void Checkers::on_faults_over(std::uint32_t first_round) {
  state_->fault_free_round = first_round;
  state_->checks[i9].rule_in();
}

void Checkers::on_round_end(Instant now, std::uint32_t, const Network& network) {
  if (!state_->checks[i1].on() || !state_->is_first()) return;
  Conservation::Counts under_way{};
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind)
    under_way[kind] = network.under_way(static_cast<Traffic>(kind));
  state_->conservation.check(now, network.counters(), under_way);
}

void Checkers::on_reduced(std::uint32_t round, std::uint32_t, std::span<const double> reference,
                          std::span<const float> result) {
  State& state = *state_;
  if (!state.checks[i10].on()) return;
  // All ranks of an all_reduce hold the same result, so only that of the first rank that returns is
  // checked.
  if (state.all_reduce && std::exchange(state.reduced_round, round) == round) return;
  state.bias.on_reduced(reference, result);
}

void Checkers::on_addresses(Instant now, std::uint64_t overdrawn) {
  state_->checks[i11].expect(overdrawn == 0, [&] {
    return format_text("at %.6f ms: %" PRIu64 " datagrams went to addresses that had not answered",
                       static_cast<double>(now.ns) / 1e6, overdrawn);
  });
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
  if (state.is_first()) state.conservation.check_links(now, state.links, under_way);
  state.deadlines.finish(now);
  if (state.whole) state.whole->finish(now);
  state.bias.finish();
  state.coverage.finish();
  state.look_for_wrongly_dead(now);
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

void Checkers::State::look_for_wrongly_dead(Instant now) {
  if (!checks[i18].on()) return;
  for (std::size_t rank = 0; rank < setup.engines.size(); ++rank) {
    if (crashed[rank] || setup.engines[rank] == nullptr) continue;
    for (Rank peer = 0; peer < setup.engines.size(); ++peer) {
      const protocol::Endpoint& endpoint = setup.engines[rank]->endpoint();
      const bool excused =
          crashed[peer] || was_stopped_long(now, peer, endpoint.config().peer_timeout);
      checks[i18].expect(!endpoint.link(peer).dead || excused, [&] {
        return format_text("at %.6f ms: rank %zu has given up rank %u, which lives",
                           static_cast<double>(now.ns) / 1e6, rank, peer);
      });
    }
  }
}

// Returns true if the rank was stopped long enough to be given up. A silent peer is probed and
// given up after a quarter of the peer time-out at the earliest (src/core/protocol/watch.cc).
bool Checkers::State::was_stopped_long(Instant now, Rank rank, Duration peer_timeout) const {
  const Stop& stop = stops[rank];
  const Duration longest = stop.since ? std::max(stop.longest, now - *stop.since) : stop.longest;
  return 4 * longest >= peer_timeout;
}

// Checks that a stopped rank is told, after it runs again, that it was given up. Its call must then
// fail before the deadline (WIRE 6.7).
void Checkers::State::look_whether_told(Instant now, Rank rank, const Call& call,
                                        const CallResult& result) {
  if (!checks[i18].on() || !is_among_all(call.kind)) return;
  if (result.status.code() != StatusCode::kDeadlineExceeded) return;
  for (Rank peer = 0; peer < book.size(); ++peer) {
    const Stop& stop = stops[peer];
    const bool runs = !crashed[peer] && !stop.since && stop.longest == Duration(0);
    if (peer == rank || !runs) continue;
    const Instant from = std::max(given_up_from[std::size_t{peer} * book.size() + rank],
                                  Instant{result.submitted_ns});
    checks[i18].expect(now - from < kToldWithin, [&] {
      return format_text("at %.6f ms: rank %u waited for its deadline; rank %u had given it up",
                         static_cast<double>(now.ns) / 1e6, rank, peer);
    });
  }
}

// Checks I18: a death that one communicator of a process has found must be known to all others.
void Checkers::State::look_for_untold_deaths(Instant now, Rank rank,
                                             const protocol::Endpoint& endpoint) {
  if (!checks[i18].on()) return;
  for (Rank peer = 0; peer < endpoint.config().size; ++peer) {
    if (peer == rank) continue;
    const protocol::Link& link = endpoint.link(peer);
    checks[i18].expect(!link.path().dead() || link.gone, [&] {
      return format_text(
          "at %.6f ms: to another communicator rank %u is dead, and rank %u waits for it",
          static_cast<double>(now.ns) / 1e6, peer, rank);
    });
  }
}

void merge(std::vector<CheckRecord>& into, const std::vector<CheckRecord>& further,
           const std::string& name) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    CheckRecord& record = into[i];
    const CheckRecord& more = further[i];
    const bool looked = record.verdict == Verdict::passed || record.verdict == Verdict::failed;
    if (more.verdict == Verdict::failed && record.verdict != Verdict::failed) {
      record.first_failure = name + ": " + more.first_failure;
      record.verdict = Verdict::failed;
    } else if (more.verdict == Verdict::passed && !looked) {
      record.first_failure.clear();
      record.verdict = Verdict::passed;
    }
    record.checked += more.checked;
    record.failures += more.failures;
  }
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
