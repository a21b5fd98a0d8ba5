#include "checker/ledger_book.h"

#include <algorithm>
#include <tuple>

#include "base/limits.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

void reset(FlowLedger& flow, std::uint32_t packets) {
  Bitmap seen = std::move(flow.seen);
  Bitmap maybe_late = std::move(flow.maybe_late);
  std::vector<FlowLedger::Distinct> order = std::move(flow.order);
  flow = FlowLedger{};
  flow.packets = packets;
  flow.seen = std::move(seen);
  flow.maybe_late = std::move(maybe_late);
  flow.order = std::move(order);
  flow.seen.resize(packets);
  flow.maybe_late.resize(packets);
  flow.order.clear();
}

std::vector<float> take_source(const Call& call, const CallPlan& plan, std::vector<float> memory) {
  const collective::OperationSpec& spec = *call.spec;
  const auto* data =
      static_cast<const float*>(plan.source_is_output() ? spec.output.data : spec.input.data);
  const std::size_t count = plan.source_is_output() ? spec.output.count : spec.input.count;
  memory.assign(data, data + count);
  const std::span<const float> residual = spec.options.residual;
  for (std::size_t i = 0; i < residual.size(); ++i) memory[i] += residual[i];
  return memory;
}

}  // namespace

LedgerBook::LedgerBook(std::vector<const collective::Engine*> engines)
    : engines_(std::move(engines)), ranks_(engines_.size()) {
  for (RankState& rank : ranks_) {
    rank.early.assign(engines_.size(), 0);
    rank.gone.assign(engines_.size(), false);
  }
}

// ---- calls --------------------------------------------------------------------------------------

CallLedger& LedgerBook::make_call(std::uint32_t number, const Call& call, Rank rank) {
  if (spare_.empty()) spare_.push_back(std::make_unique<CallLedger>());
  calls_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  CallLedger& ledger = *calls_.back();
  ledger.number = number;
  ledger.round = call.round;
  ledger.kind = call.kind;
  ledger.plan = CallPlan(*call.spec, engine(rank).endpoint().config(), number, call.lengths);
  ledger.over = 0;
  ledger.ranks.resize(ranks_.size());
  ledger.shared.known.resize(ranks_.size());
  ledger.shared.count.assign(ranks_.size(), 0);
  for (Rank each = 0; each < size(); ++each) lay_out(ledger, each);
  return ledger;
}

void LedgerBook::lay_out(CallLedger& call, Rank rank) {
  RankLedger& side = call.ranks[rank];
  side.submitted = side.opened = side.over = side.succeeded = false;
  side.control.clear();
  side.early.clear();
  side.passed.assign(ranks_.size(), 0);
  side.passed_by_all = 0;
  if (ranks_[rank].dead) mark_over(call, rank);
  if (!call.plan.covered()) return;
  for (auto& half : side.flows) half.resize(ranks_.size());
  for (Rank from = 0; from < size(); ++from) {
    const bool self = from == rank;
    reset(side.flow(FlowKind::reduce, from), self ? 0 : call.plan.reduce_to(rank).grid.packets());
    reset(side.flow(FlowKind::spread, from),
          self ? 0 : call.plan.spread(from, rank).grid.packets());
  }
  call.shared.known[rank].resize(call.plan.spread(rank, rank).grid.packets());
  const std::uint32_t packets = call.plan.reduce_to(rank).grid.packets();
  if (call.plan.reduces() && !call.plan.reduce_format().identity())
    side.staged.resize(std::size_t{packets} * call.packet_bytes(rank) * ranks_.size());
}

CallLedger* LedgerBook::submit(Instant now, Rank rank, const Call& call) {
  RankState& state = ranks_[rank];
  const std::uint32_t number = state.calls++;
  state.open = true;
  while (first_ + calls_.size() <= number) {
    make_call(static_cast<std::uint32_t>(first_ + calls_.size()), call, rank);
  }
  CallLedger* const ledger = find(number);
  if (ledger == nullptr) return nullptr;
  const protocol::EndpointConfig& config = engine(rank).endpoint().config();
  if (!same_operation(CallPlan(*call.spec, config, number, call.lengths), ledger->plan)) {
    disagreed_ = true;
    return nullptr;
  }
  RankLedger& side = ledger->ranks[rank];
  side.submitted = true;
  side.submitted_at = now;
  side.deadline = call.spec->options.delivery.deadline;
  side.in_place = call.spec->input.data == call.spec->output.data;
  side.sequence = number + state.messages;
  const std::span<const double> weights = call.spec->options.owner_weights;
  side.weight = static_cast<float>(weights.empty() ? call.spec->options.weight : weights[rank]);
  side.owner_weights.assign(weights.begin(), weights.end());
  for (Rank peer = 0; peer < size(); ++peer) {
    if (state.gone[peer]) mark_left(now, rank, peer, *ledger);
  }
  if (ledger->plan.covered()) side.source = take_source(call, ledger->plan, std::move(side.source));
  const std::span<const float> control = call.spec->options.control_variate;
  if (!control.empty()) {
    const FlowPlan own = ledger->plan.reduce_to(rank);
    const auto part = control.subspan(own.source, own.grid.elements());
    side.control.assign(part.begin(), part.end());
  }
  // The engine opens the call later if kOpenCollectivesMax operations are open already. A rank that
  // was given up opens no call.
  const protocol::Endpoint& endpoint = engine(rank).endpoint();
  if (endpoint.liveness().given_up().ok() &&
      endpoint.rounds().collective_count() < limits::kOpenCollectivesMax)
    open(now, rank, *ledger);
  return ledger;
}

CallLedger* LedgerBook::find(std::uint32_t number) {
  const std::uint32_t at = number - first_;
  return at < calls_.size() ? calls_[at].get() : nullptr;
}

CallLedger* LedgerBook::open_call(Rank rank) {
  const RankState& state = ranks_[rank];
  return state.open ? find(state.calls - 1) : nullptr;
}

void LedgerBook::mark_over(CallLedger& call, Rank rank) {
  if (call.ranks[rank].over) return;
  call.ranks[rank].over = true;
  ++call.over;
}

void LedgerBook::close(Rank rank, bool succeeded) {
  CallLedger* const call = open_call(rank);
  ranks_[rank].open = false;
  if (call == nullptr) return;
  call->ranks[rank].succeeded = succeeded;
  mark_over(*call, rank);
  drop_finished();
}

void LedgerBook::kill(Rank rank) {
  ranks_[rank].dead = true;
  for (const auto& call : calls_) mark_over(*call, rank);
  drop_finished();
}

void LedgerBook::drop_finished() {
  while (!calls_.empty() && calls_.front()->over == ranks_.size()) {
    spare_.push_back(std::move(calls_.front()));
    calls_.pop_front();
    ++first_;
  }
}

void LedgerBook::pumped(Rank rank) {
  RankState& state = ranks_[rank];
  while (state.opened < state.calls &&
         engine(rank).endpoint().rounds().opened_below() > state.opened) {
    CallLedger* const call = find(state.opened);
    if (call == nullptr) break;
    open(call->ranks[rank].submitted_at, rank, *call);
  }
  state.batch_over = true;
}

void LedgerBook::open(Instant now, Rank rank, CallLedger& call) {
  RankState& state = ranks_[rank];
  state.opened = call.number + 1;
  RankLedger& side = call.ranks[rank];
  side.opened = true;
  if (const auto failed = state.failed_before.extract(call.number); !failed.empty())
    mark_left(now, rank, failed.mapped(), call);
  if (side.early.empty()) return;
  begin_batch(state);
  // The first early packet begins a batch and finds the call open.
  state.batch_empty = true;
  std::sort(side.early.begin(), side.early.end(), [](const EarlyPacket& a, const EarlyPacket& b) {
    return std::tie(a.from, a.place) < std::tie(b.from, b.place);
  });
  for (const EarlyPacket& packet : side.early) {
    state.early[packet.from] &= static_cast<EarlyPlaces>(~(1u << packet.place));
    if (call.plan.covered()) count(now, rank, packet.from, call, packet.header);
    state.batch_empty = false;
  }
  side.early.clear();
}

}  // namespace leeway::sim
