#include "collective/operation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "base/contracts.h"
#include "base/duration_text.h"

namespace leeway::collective {

using protocol::FlowKind;

namespace {

constexpr std::size_t kNamedMax = 4;  // ranks in a text

}  // namespace

Operation::Operation(protocol::Endpoint& endpoint, estimate::LinkHistory& history,
                     AutomaticCodec& automatic, MemoryWatcher* watcher)
    : endpoint_(endpoint),
      history_(history),
      automatic_(automatic),
      reduction_(watcher),
      spread_(watcher) {}

bool Operation::holds(std::uint64_t place) const {
  return request_ != nullptr && request_->spec.stands_in && request_->place == place &&
         round_ != nullptr && !round_->ended;
}

void Operation::take_over(Instant now, Request& request) {
  protocol::Round* const stand_in = std::exchange(round_, nullptr);
  std::exchange(request_, nullptr)->finish(Status(), now);
  (void)begin(now, request, stand_in->number, stand_in);
}

bool Operation::begin(Instant now, Request& request, std::optional<std::uint32_t> number,
                      protocol::Round* stand_in) {
  LEEWAY_ASSERT(free());
  request_ = &request;
  submitted_ = reduce_settled_ = request.submitted;
  outcome_known_ = false;
  ask_at_ = Instant::infinite_future();
  if (exchanges()) payload_.begin(*request.payload, to_string(request.spec.kind));
  plan_collective(request, endpoint_,
                  {.number = number.value_or(endpoint_.rounds().opened_below()),
                   .meter = meter_,
                   .own_chunks = spread_.available(),
                   .barrier = barrier_bytes_,
                   .payload = &payload_},
                  plan_);
  plan_.round.number = number;
  if (request.place && !plan_.round.number_said)
    plan_.round.number_said = static_cast<std::uint32_t>(*request.place);
  if (plan_.round.phase(FlowKind::reduce).active) {
    meter_.reset();
    reduction_.begin(plan_, history_);
    reduced_.reset(reduction_.grid().chunks());
    reduced_taken_ = 0;
  }
  if (plan_.round.phase(FlowKind::spread).active) spread_.begin(plan_);
  if (stand_in != nullptr) endpoint_.reopen_round(now, *stand_in, plan_.round);
  round_ = stand_in != nullptr ? stand_in : endpoint_.open_round(now, plan_.round, *this);
  if (round_ == nullptr) {
    request_ = nullptr;
    return false;
  }
  if (request.spec.forfeit != nullptr) {
    fail_at_source(now, *request.spec.forfeit);
    return true;
  }
  if (request.spec.stands_in) {
    endpoint_.start(now, *round_);
    return true;
  }
  if (exchanges()) ask_at_ = now;
  // An input without units of work is no gradient, so it must not influence the choice of codec.
  const OperationSpec& spec = request.spec;
  if (request.automatic_number && spec.options.weight > 0.0) {
    automatic_.observe({static_cast<const float*>(spec.input.data), spec.input.count});
  }
  endpoint_.start(now, *round_);
  return true;
}

schedule::PacketGrid Operation::outgoing(FlowKind kind, Rank peer) const {
  return kind == FlowKind::reduce ? reduction_.grid_of(peer) : spread_.outgoing(peer);
}

schedule::PacketGrid Operation::incoming(FlowKind kind, Rank peer) const {
  return kind == FlowKind::reduce ? reduction_.grid() : spread_.incoming(peer);
}

const Bitmap* Operation::required(FlowKind kind, Rank peer) const {
  const BroadcastLedger* ledger = request_->spec.ledger;
  return kind == FlowKind::spread && ledger != nullptr ? &ledger->required[peer] : nullptr;
}

protocol::Payload Operation::payload(FlowKind kind, Rank to, PacketIndex index, PacketIndex ahead,
                                     MutableByteSpan scratch) {
  return kind == FlowKind::reduce ? reduction_.own().payload(to, index, ahead, scratch)
                                  : spread_.payload(to, index, scratch);
}

protocol::Acceptance Operation::accept(Rank from, const wire::DataHeader& header,
                                       ByteSpan payload) {
  if (header.kind != FlowKind::reduce) {
    if (!spread_.accept(from, header.index, payload)) return protocol::Acceptance::refused;
    if (exchanges()) payload_.note_spread(from, header.index);
    if (request_->spec.ledger != nullptr)
      request_->spec.ledger->arrived[from].set(header.index.value);
    return protocol::Acceptance::accepted;
  }
  const std::uint32_t before = reduced_.size();
  const auto acceptance =
      reduction_.accept(from, header, payload, round_->phase(FlowKind::reduce).receive, reduced_);
  if (reduced_.size() != before) release_reduced();
  return acceptance;
}

protocol::Payload Operation::parity(FlowKind kind, Rank to, wire::ParityPlace place,
                                    MutableByteSpan scratch) {
  return kind == FlowKind::reduce ? reduction_.own().parity(to, place, scratch)
                                  : spread_.parity(to, place, scratch);
}

bool Operation::hold_parity(FlowKind kind, Rank from, PacketIndex index, ByteSpan payload) {
  return kind == FlowKind::reduce ? reduction_.hold_parity(from, index, payload)
                                  : spread_.hold_parity(from, index, payload);
}

ByteSpan Operation::lift_parity(FlowKind kind, Rank from, PacketIndex index) {
  return kind == FlowKind::reduce ? reduction_.lift_parity(from, index)
                                  : spread_.lift_parity(from, index);
}

bool Operation::recover(FlowKind kind, Rank from, const CodedPackets& code) {
  if (kind != FlowKind::reduce) return spread_.recover(from, code);
  const std::uint32_t before = reduced_.size();
  const bool fits =
      reduction_.recover(from, code, round_->phase(FlowKind::reduce).receive, reduced_);
  if (reduced_.size() != before) release_reduced();
  return fits;
}

void Operation::release_reduced() {
  if (exchanges()) {
    for (; reduced_taken_ < reduced_.size(); ++reduced_taken_)
      payload_.hand_over_reduced(reduced_[reduced_taken_]);
  }
  if (!plan_.round.phase(FlowKind::spread).active) return;
  spread_.on_reduced(reduction_.grid(), reduced_);
  endpoint_.release_chunks(*round_, FlowKind::spread);
}

void Operation::on_settled(FlowKind kind, Instant now) {
  if (kind == FlowKind::spread && exchanges()) payload_.settle_spread();
  if (kind != FlowKind::reduce) return;
  reduce_settled_ = now;
  learn_from_links();
  reduction_.settle(round_->phase(kind).receive, reduced_);
  release_reduced();
}

void Operation::learn_from_links() {
  const auto& flows = round_->phase(FlowKind::reduce).receive;
  // Short exact flows on paced ranks are sent in several copies (WIRE 2.12), of which one is
  // enough. So the number of packets that came says little about the link's delivery rate.
  const bool copied = endpoint_.config().paced &&
                      plan_.round.phase(FlowKind::reduce).delivery == Delivery::Kind::exact;
  for (Rank peer = 0; peer < flows.size(); ++peer) {
    const protocol::ReceiveFlow& flow = flows[peer];
    if (flow.packets == 0 || (copied && flow.packets <= limits::kEagerPackets)) continue;
    history_.learn_delivery(peer,
                            static_cast<double>(flow.arrived_count - flow.repaired) / flow.packets);
    if (plan_.reduction.fetch_empty)
      history_.learn_heard(peer, flow.packets, flow.arrived_count > 0);
  }
}

void Operation::on_done(const Status& status, Instant now) {
  CollectiveReport& report = request_->report;
  if (!status.ok()) request_->blame = round_->blame;
  report.sequence = request_->sequence;
  report.estimator = request_->spec.options.estimator;
  report.bytes_sent = round_->bytes_sent;
  report.times.gate =
      round_->gates_closed == 0 ? round_->gate_open_at - submitted_ : now - submitted_;
  report.times.reduce = reduce_settled_ - submitted_;
  report.times.spread = now - reduce_settled_;
  report.times.total = now - submitted_;
  for (const FlowKind kind : plan_.round.active_kinds()) {
    const protocol::PhaseState& phase = round_->phase(kind);
    report.deadline_cut |= phase.deadline_cut || phase.cut_elsewhere() != kNoRank;
  }
  report.codec = request_->spec.options.codec;
  if (is_empty(request_->spec)) {
    const auto size = static_cast<std::uint32_t>(plan_.size);
    if (has_reduce_half(request_->spec.kind))
      report.contributors = {size, static_cast<double>(size), std::vector<std::uint64_t>(size + 1)};
  } else if (plan_.round.phase(FlowKind::reduce).active) {
    reduction_.fill_report(report);
    request_->units = reduction_.units();
  }
  fill_peer_reports();
  if (status.ok() && plan_.meter != nullptr) report_noise();
  Status outcome = status;
  if (status.ok() && plan_.round.phase(FlowKind::spread).active) {
    const auto& flows = round_->phase(FlowKind::spread).receive;
    report.elements_missing = spread_.missing_elements(flows);
    report.complete = report.elements_missing == 0;
    const Delivery::Kind promise = plan_.round.phase(FlowKind::spread).delivery;
    const bool sums = request_->spec.kind == OperationKind::all_reduce;
    if (!report.complete && (promise != Delivery::Kind::best_effort || request_->spec.lenient) &&
        (promise == Delivery::Kind::exact || sums)) {
      spread_.clear_missing(flows);
    }
    if (!report.complete && promise == Delivery::Kind::exact && !request_->spec.lenient)
      outcome = incomplete();
  }
  outcome_known_ = exchanges() && outcome.ok();
  if (!outcome_known_) return finish(now, with_awaited_payload(outcome));
  ask_at_ = now;
}

// Returns text such as ", most of them from rank 2, which is gone". It is empty if equally many
// packets are missing from more than four ranks. Ranks that have left are named before all others,
// because packets of other ranks may be missing on their account.
std::string Operation::missing_of() const {
  const auto& flows = round_->phase(FlowKind::spread).receive;
  std::vector<Rank> ranks;
  std::pair<bool, std::uint32_t> most{};
  for (Rank peer = 0; peer < flows.size(); ++peer) {
    const std::uint32_t missing = flows[peer].packets - flows[peer].arrived_count;
    const std::pair here(endpoint_.link(peer).gone || flows[peer].abandoned, missing);
    if (missing == 0 || here < most) continue;
    if (here > most) ranks.clear();
    most = here;
    ranks.push_back(peer);
  }
  if (ranks.empty() || ranks.size() > kNamedMax) return {};
  std::string text = ranks.size() == 1 ? ", most of them from rank " : ", most of them from ranks ";
  for (const Rank rank : ranks) {
    if (rank != ranks.front()) text += ", ";
    text += std::to_string(endpoint_.config().known_as(rank));
  }
  if (ranks.size() == 1 && endpoint_.link(ranks.front()).gone) text += ", which is gone";
  return text;
}

// Returns the error of a spread half that was to bring the whole result, and did not.
Status Operation::incomplete() const {
  const CollectiveReport& report = request_->report;
  const std::size_t elements = std::max(request_->spec.input.count, request_->spec.output.count);
  const auto named = [this](Rank rank) { return endpoint_.config().known_as(rank); };
  std::array<char, 64> why{};
  const protocol::PhaseState& spread = round_->phase(FlowKind::spread);
  if (const Rank by = spread.cut_elsewhere(); by != kNoRank && !spread.deadline_cut) {
    std::snprintf(why.data(), why.size(), "rank %u gave it up at its own deadline", named(by));
  } else {
    std::snprintf(why.data(), why.size(), "deadline %s",
                  in_milliseconds(plan_.round.deadline_said).data());
  }
  return Status::error(
      report.deadline_cut ? StatusCode::kDeadlineExceeded : StatusCode::kPeerLost,
      "rank %u: %s #%u: %llu of %zu elements of the result did not come%s (%s): they are 0 here, "
      "where spread exact promises all; a lossy spread asks for what comes",
      named(plan_.self), plan_.round.name, round_->number_said(),
      static_cast<unsigned long long>(report.elements_missing), elements, missing_of().c_str(),
      why.data());
}

// Adds to a time-out the chunk for which the caller's payload source or sink kept peers waiting.
Status Operation::with_awaited_payload(const Status& status) const {
  if (!exchanges() || status.code() != StatusCode::kDeadlineExceeded) return status;
  const std::string awaited = payload_.awaited();
  if (awaited.empty()) return status;
  return Status::error(StatusCode::kDeadlineExceeded, "%s; and here %s", status.c_str(),
                       awaited.c_str());
}

void Operation::finish(Instant now, const Status& status) {
  outcome_known_ = false;
  ask_at_ = Instant::infinite_future();
  std::exchange(request_, nullptr)->finish(status, now);
}

// Fails the operation. Peers are told kInternal if a payload source failed with kCancelled or
// kPeerLost, which would read as if this rank had left.
void Operation::fail_at_source(Instant now, const Status& why) {
  const bool misleads = request_->spec.elsewhere() && (why.code() == StatusCode::kCancelled ||
                                                       why.code() == StatusCode::kPeerLost);
  endpoint_.fail(now, *round_, why, {.told = misleads ? StatusCode::kInternal : StatusCode::kOk});
}

void Operation::ask_payload(Instant now) {
  if (!exchanges()) return;
  const Duration every = payload_.poll_every();
  ask_at_ = every > Duration{0} ? now + every : Instant::infinite_future();
  const PayloadExchange::Progress progress = payload_.ask(now, spread_.available());
  if (!outcome_known_) {
    if (!progress.fault.ok()) return fail_at_source(now, progress.fault);
    if (progress.contributions) endpoint_.release_chunks(*round_, FlowKind::reduce);
    if (progress.spread) endpoint_.release_chunks(*round_, FlowKind::spread);
    return;
  }
  if (!progress.fault.ok()) return finish(now, progress.fault);
  if (payload_.over()) {
    request_->report.times.total = now - submitted_;
    return finish(now, Status());
  }
  const Instant deadline = payload_deadline();
  if (now < deadline) {
    ask_at_ = std::min(ask_at_, deadline);
    return;
  }
  finish(now, Status::error(StatusCode::kDeadlineExceeded,
                            "rank %u: %s: Timed out (deadline %s): %s", plan_.self,
                            plan_.round.name, in_milliseconds(plan_.round.deadline_said).data(),
                            payload_.awaited().c_str()));
}

// Returns when the payload sink must be done. The sink may get the last packets only at the call's
// deadline. So it has the call's whole time once more, from when they were handed over.
Instant Operation::payload_deadline() const {
  const Instant deadline = plan_.round.deadline;
  if (deadline == Instant::infinite_future() || payload_.all_used()) return deadline;
  return std::max(deadline, payload_.handed_at() + plan_.round.deadline_length);
}

void Operation::end(Instant now, const Status& status, const protocol::Blame& blame) {
  if (outcome_known_) return finish(now, status);
  if (plan_.round.stands_in) return endpoint_.end_stand_in(now, *round_, status, blame);
  endpoint_.fail(now, *round_, status, blame);
}

void Operation::cancel_payload(Instant now, const Status& status) {
  if (exchanges() && outcome_known_) finish(now, status);
}

void Operation::report_noise() {
  if (meter_.empty()) return;
  const auto& flows = round_->phase(FlowKind::reduce).receive;
  std::uint64_t packets = 0;
  std::uint64_t arrived = 0;
  for (const protocol::ReceiveFlow& flow : flows) {
    packets += flow.packets;
    arrived += flow.arrived_count;
  }
  const CollectiveOptions& options = request_->spec.options;
  // If nothing came from other ranks, nothing is known of their contributions. Neither the control
  // variate nor this rank's own contribution tells what they are.
  if (options.estimator == Estimator::augmented && arrived == 0 && packets > 0) return;
  const double loss =
      packets == 0 ? 0.0 : 1.0 - static_cast<double>(arrived) / static_cast<double>(packets);
  const std::optional<estimate::NoiseEstimate> noise = estimate::estimate_noise(
      meter_.complete({.ranks = static_cast<std::uint32_t>(plan_.size),
                       .shrinks = options.estimator == Estimator::zero_fill}));
  if (!noise) return;
  CollectiveReport& report = request_->report;
  report.noise = report_of(*noise, loss);
  const double units = options.op == ReduceOp::avg ? 1.0 : plan_.size;
  report.variance_estimate = units * units * noise->loss_variance;
  if (request_->automatic_number)
    automatic_.observe(*noise, plan_.reduction.shards[plan_.self].count);
}

void Operation::fill_peer_reports() {
  CollectiveReport& report = request_->report;
  for (const Rank peer : endpoint_.state().others()) {
    PeerReport row{.rank = peer};
    for (const FlowKind kind : plan_.round.active_kinds()) {
      const protocol::ReceiveFlow& in = round_->phase(kind).receive[peer];
      row.expected += in.packets;
      row.arrived += in.arrived_count;
      row.repaired += in.repaired;
      row.duplicate += in.duplicate;
      row.late += in.late;
      const protocol::SendFlow& out = round_->phase(kind).send[peer];
      row.sent += out.sent;
      row.missed |= out.missed;
    }
    report.peers.push_back(row);
  }
  set_losses(report);
}

void Operation::on_closed() {
  round_ = nullptr;
  if (!outcome_known_) request_ = nullptr;
}

}  // namespace leeway::collective
