#include "checker/ledger_book.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "base/limits.h"
#include "checker/chunk_order.h"
#include "wire/code_grid.h"

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

bool is_reduced_by_chunks(const CallPlan& plan, const schedule::PacketGrid& grid) {
  return plan.delivery().kind == Delivery::Kind::best_effort && plan.packet_scales() &&
         grid.chunks() > 2;
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
  // With that many operations open, the engine lets the call wait. A rank that was given up opens
  // no call.
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
  // The first datagram of a batch finds the call open, whatever came before.
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

// ---- packets ------------------------------------------------------------------------------------

void LedgerBook::begin_batch(RankState& state) {
  if (!state.batch_over) return;
  state.batch_over = false;
  ++state.batch;
  state.items.clear();
}

void LedgerBook::begin_datagram(Rank rank) {
  RankState& state = ranks_[rank];
  state.batch_empty = state.batch_over;
  begin_batch(state);
}

LedgerBook::Arrival LedgerBook::on_data(Instant now, Rank rank, Rank from,
                                        const wire::DataHeader& header, ByteSpan payload) {
  if (header.kind == FlowKind::point) {
    keep_early_message(rank, from, header);
    return {};
  }
  CallLedger* const call = find(header.round);
  if (call == nullptr) return {};
  RankLedger& side = call->ranks[rank];
  if (!call->plan.covered()) {  // it takes the places of others all the same
    if (!side.opened && !side.over) keep_early(rank, from, *call, header);
    return {};
  }
  const FlowLedger& flow = side.flow(header.kind, from);
  if (side.over || header.flow_packets != flow.packets) return {};
  const bool first = !header.is_parity() && !flow.seen.test(header.index.value);
  if (!side.opened && !keep_early(rank, from, *call, header)) return {};
  if (first && header.kind == FlowKind::reduce)
    stage(rank, from, *call, header.index.value, payload);
  if (side.opened) count(now, rank, from, *call, header);
  return {call, first};
}

// Takes the sender's first free place. Returns none if all its places are taken. Also gives back
// the places of messages that have opened since.
std::optional<std::uint32_t> LedgerBook::take_place(Rank rank, Rank from) {
  RankState& state = ranks_[rank];
  const protocol::Endpoint& endpoint = engine(rank).endpoint();
  std::erase_if(state.early_messages, [&](const EarlyMessage& message) {
    const std::uint32_t opened = endpoint.rounds().next_message(message.from, message.tag, false);
    if (static_cast<std::int32_t>(message.number - opened) >= 0) return false;
    state.early[message.from] &= static_cast<EarlyPlaces>(~(1u << message.place));
    return true;
  });
  EarlyPlaces& taken = state.early[from];
  const auto place = static_cast<std::uint32_t>(std::countr_one(taken));
  if (place >= limits::kEarlySlotsPerPeer) return std::nullopt;
  taken |= static_cast<EarlyPlaces>(1u << place);
  return place;
}

void LedgerBook::keep_early_message(Rank rank, Rank from, const wire::DataHeader& header) {
  const std::uint32_t opened =
      engine(rank).endpoint().rounds().next_message(from, header.message_tag, false);
  const auto ahead = static_cast<std::int32_t>(header.round - opened);
  if (ahead < 0) return;
  auto& early = ranks_[rank].early_messages;
  const auto same = [&](const EarlyMessage& held) {
    return held.from == from && held.tag == header.message_tag && held.number == header.round &&
           held.index == header.index;
  };
  if (std::any_of(early.begin(), early.end(), same)) return;
  const auto place = take_place(rank, from);
  if (place) early.push_back({from, *place, header.message_tag, header.round, header.index});
}

bool LedgerBook::keep_early(Rank rank, Rank from, CallLedger& call,
                            const wire::DataHeader& header) {
  const auto same = [&](const auto& held) {
    return held.from == from && held.header.kind == header.kind &&
           held.header.index == header.index;
  };
  auto& early = call.ranks[rank].early;
  if (const auto held = std::find_if(early.begin(), early.end(), same); held != early.end()) {
    held->header = header;
    return true;
  }
  if (const auto place = take_place(rank, from)) {
    early.push_back({from, *place, header});
    return true;
  }
  if (call.plan.covered()) ++call.ranks[rank].flow(header.kind, from).dropped_early;
  return false;
}

void LedgerBook::stage(Rank rank, Rank from, CallLedger& call, std::uint32_t index,
                       ByteSpan payload) {
  // Checks that the packet equals the elements that the sender brought.
  if (call.plan.reduce_format().identity()) return;
  const ByteSpan place = call.staged(rank, from, index);
  if (payload.size() != place.size()) return;
  std::memcpy(const_cast<std::byte*>(place.data()), payload.data(), payload.size());
}

// Returns true if this is the first copy.
bool LedgerBook::count(Instant now, Rank rank, Rank from, CallLedger& call,
                       const wire::DataHeader& header) {
  RankState& state = ranks_[rank];
  RankLedger& side = call.ranks[rank];
  if (header.is_parity()) {
    count_parity(now, rank, from, call, header);
    return false;
  }
  FlowLedger& flow = side.flow(header.kind, from);
  const bool first = !flow.seen.test_and_set(header.index.value);
  const bool late = may_be_late(now, rank, call, flow, header);
  const bool ends = header.ends_first_pass() && !flow.ended;
  const bool repaired = header.attempt > 0;
  ++flow.copies;
  state.items.push_back({.call = call.number,
                         .kind = header.kind,
                         .from = from,
                         .index = header.index.value,
                         .first = first,
                         .late = late,
                         .repaired = repaired,
                         .ended = ends,
                         .opens = state.batch_empty});
  // A later copy may end the pass, although the first copy said that the pass goes on.
  if (ends) {
    flow.ended = true;
    flow.ended_batch = state.batch;
  }
  if (!first) return false;
  ++flow.distinct;
  flow.repaired += repaired;
  flow.order.push_back({header.index.value, repaired});
  if (late) {
    flow.maybe_late.set(header.index.value);
    flow.late_weight = header.weight;
    ++flow.unsure;
  } else if (flow.weight != flow.weight) {
    flow.weight = header.weight;
  }
  if (header.kind == FlowKind::reduce) note_progress(rank, from, call, header);
  if (!flow.parities.empty())
    follow(rank, from, call, header.kind, wire::CodeGrid(flow.packets).code_of(header.index), late);
  return true;
}

void LedgerBook::count_parity(Instant now, Rank rank, Rank from, CallLedger& call,
                              const wire::DataHeader& header) {
  RankState& state = ranks_[rank];
  FlowLedger& flow = call.ranks[rank].flow(header.kind, from);
  const wire::CodeGrid grid(flow.packets);
  if (flow.parities.empty()) {
    flow.parity_seen.resize(grid.parities_max());
    flow.parities.resize(grid.codes());
  }
  const std::uint32_t number = header.index.value - flow.packets;
  const bool first = !flow.parity_seen.test_and_set(number);
  const bool late = may_be_late(now, rank, call, flow, header);
  const bool ends = header.ends_first_pass() && !flow.ended;
  state.items.push_back({.call = call.number,
                         .kind = header.kind,
                         .from = from,
                         .index = number,
                         .first = first,
                         .late = late,
                         .repaired = false,
                         .ended = ends,
                         .opens = state.batch_empty,
                         .parity = true});
  if (ends) {
    flow.ended = true;
    flow.ended_batch = state.batch;
  }
  if (late) {
    flow.late_weight = header.weight;
  } else if (flow.weight != flow.weight) {
    flow.weight = header.weight;
  }
  const std::uint32_t code = grid.parity(number).code;
  flow.parities[code] += first;
  follow(rank, from, call, header.kind, code, late);
}

std::uint64_t LedgerBook::seed(Rank rank) const {
  return engine(rank).endpoint().config().seed;
}

// The missing packets of a code follow once equally many of its parities have come.
void LedgerBook::follow(Rank rank, Rank from, CallLedger& call, FlowKind kind, std::uint32_t code,
                        bool late) {
  RankState& state = ranks_[rank];
  FlowLedger& flow = call.ranks[rank].flow(kind, from);
  const wire::CodeGrid grid(flow.packets);
  std::vector<std::uint32_t> missing;
  for (std::uint32_t n = 0; n < grid.size(code); ++n) {
    const std::uint32_t index = grid.packet(code, n).value;
    if (!flow.seen.test(index)) missing.push_back(index);
  }
  if (missing.size() > flow.parities[code]) return;
  for (const std::uint32_t index : missing) {
    state.items.push_back({.call = call.number,
                           .kind = kind,
                           .from = from,
                           .index = index,
                           .first = true,
                           .late = late,
                           .repaired = true,
                           .ended = false,
                           .opens = state.batch_empty,
                           .follows = true});
    flow.seen.set(index);
    flow.order.push_back({index, true});
    if (kind == FlowKind::reduce && call.ranks[from].submitted)
      stage(rank, from, call, index, call.brought(rank, from, index, seed(rank), encoded_));
    ++flow.copies;
    ++flow.distinct;
    ++flow.repaired;
    if (!late) continue;
    flow.maybe_late.set(index);
    ++flow.unsure;
    ++flow.unsure_follow;
  }
}

bool LedgerBook::may_be_late(Instant now, Rank rank, const CallLedger& call, const FlowLedger& flow,
                             const wire::DataHeader& header) const {
  const RankLedger& side = call.ranks[rank];
  const bool reduce = header.kind == FlowKind::reduce;
  if (now >= (reduce ? call.reduce_ends(rank) : call.ends(rank))) return true;
  const std::uint64_t batch = ranks_[rank].batch;
  if (flow.ended && flow.ended_batch != batch) return true;
  if (flow.left && flow.left_batch != batch) return true;
  if (!reduce || side.passed_by_all == 0) return false;
  const ChunkOrder order(
      call.plan.reduce_to(rank).grid,
      engine(rank).endpoint().order().rotation_key(call.number, FlowKind::reduce, rank));
  return order.place(header.index) < side.passed_by_all;
}

void LedgerBook::note_progress(Rank rank, Rank from, CallLedger& call,
                               const wire::DataHeader& header) {
  const schedule::PacketGrid grid = call.plan.reduce_to(rank).grid;
  if (!is_reduced_by_chunks(call.plan, grid)) return;
  const ChunkOrder order(
      grid, engine(rank).endpoint().order().rotation_key(call.number, FlowKind::reduce, rank));
  RankLedger& side = call.ranks[rank];
  const std::uint32_t passed = order.passed(header.position);
  if (passed <= side.passed[from]) return;
  side.passed[from] = passed;
  std::uint32_t by_all = passed;
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer != rank) by_all = std::min(by_all, side.passed[peer]);
  }
  side.passed_by_all = std::max(side.passed_by_all, by_all);
}

void LedgerBook::on_end(Instant now, Rank rank, Rank from, const wire::End& end) {
  CallLedger* const call = find(end.round);
  if (call == nullptr || !call->plan.covered() || end.kind == FlowKind::point) return;
  RankLedger& side = call->ranks[rank];
  FlowLedger& flow = side.flow(end.kind, from);
  if (!side.opened || side.over || end.flow_packets != flow.packets) return;
  if (flow.weight != flow.weight) {
    const bool late = end.kind == FlowKind::reduce && now >= call->reduce_ends(rank);
    (late ? flow.late_weight : flow.weight) = end.weight;
  }
  if (flow.ended) return;
  flow.ended = true;
  flow.ended_batch = ranks_[rank].batch;
}

void LedgerBook::on_report(Instant now, Rank rank, Rank from, const wire::Report& report) {
  for (const wire::OpenRound& entry : std::span(report.open).first(report.open_count)) {
    // (If a deadline ended a lossy call, its failure is reported again.)
    const bool again = entry.tag.delivery != Delivery::Kind::exact &&
                       entry.failure == StatusCode::kDeadlineExceeded;
    if (entry.failed() && !entry.point_to_point && !again && entry.round >= ranks_[rank].opened)
      ranks_[rank].failed_before.try_emplace(entry.round, from);
  }
  CallLedger* const call = open_call(rank);
  if (call == nullptr) return;
  const auto ahead = static_cast<std::int32_t>(report.opened_below - call->number);
  if (ahead <= 0) return;
  for (std::uint32_t i = 0; i < report.open_count; ++i) {
    const wire::OpenRound& entry = report.open[i];
    if (entry.round == call->number && !entry.point_to_point && !entry.failed()) return;
  }
  mark_left(now, rank, from, *call);
}

void LedgerBook::on_goodbye(Instant now, Rank rank, Rank from) {
  ranks_[rank].gone[from] = true;
  CallLedger* const call = open_call(rank);
  if (call != nullptr) mark_left(now, rank, from, *call);
}

void LedgerBook::mark_left(Instant now, Rank rank, Rank from, CallLedger& call) {
  if (!call.plan.covered()) return;
  for (auto& half : call.ranks[rank].flows) {
    if (half[from].left) continue;
    half[from].left = true;
    half[from].left_at = now;
    half[from].left_batch = ranks_[rank].batch;
  }
}

void LedgerBook::on_lost(Rank from, Rank to, const wire::DataHeader& header) {
  CallLedger* const call = find(header.round);
  if (call == nullptr || !call->plan.covered() || header.kind == FlowKind::point) return;
  call->ranks[to].flow(header.kind, from).lost += header.attempt == 0 && !header.is_parity();
}

// ---- the batch ----------------------------------------------------------------------------------

bool LedgerBook::take_back(Rank rank, std::uint64_t copies) {
  CallLedger* const call = open_call(rank);
  std::vector<BatchItem>& items = ranks_[rank].items;
  for (; copies > 0 && !items.empty(); items.pop_back()) {
    const BatchItem& item = items.back();
    if (item.call != call->number) continue;
    FlowLedger& flow = call->ranks[rank].flow(item.kind, item.from);
    // A header that tells its sender's progress is processed first, and may end the call. A packet
    // that must count cannot end it.
    if (item.opens && item.first && !item.late && !item.parity) return false;
    if (item.parity) {
      flow.ended &= !item.ended;
      if (item.first) {
        flow.parity_seen.clear(item.index);
        --flow.parities[wire::CodeGrid(flow.packets).parity(item.index).code];
      }
      continue;
    }
    --copies;
    --flow.copies;
    flow.ended &= !item.ended;
    if (!item.first) continue;
    --flow.distinct;
    flow.repaired -= item.repaired;
    flow.unsure -= item.late;
    flow.unsure_follow -= item.late && item.follows;
    flow.seen.clear(item.index);
    flow.maybe_late.clear(item.index);
    flow.order.pop_back();
  }
  return copies == 0;
}

}  // namespace leeway::sim
