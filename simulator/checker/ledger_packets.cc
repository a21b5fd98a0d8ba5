// The part of LedgerBook that assigns packets to calls and counts them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/limits.h"
#include "checker/chunk_order.h"
#include "checker/ledger_book.h"
#include "wire/code_grid.h"

namespace leeway::sim {
namespace {

using wire::FlowKind;

bool is_reduced_by_chunks(const CallPlan& plan, const schedule::PacketGrid& grid) {
  return plan.delivery().kind == Delivery::Kind::best_effort && plan.packet_scales() &&
         grid.chunks() > 2;
}

}  // namespace

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
  if (!call->plan.covered()) {  // its packets still take places that others could have
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

// Takes the sender's first free place for early packets, or returns none if all are taken. First
// frees the places of messages that have opened since.
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
  // Keeps the packet as it came if it is encoded.
  if (call.plan.reduce_format().identity()) return;
  const ByteSpan place = call.staged(rank, from, index);
  if (payload.size() != place.size()) return;
  std::memcpy(const_cast<std::byte*>(place.data()), payload.data(), payload.size());
}

// Counts a copy of a packet in its flow.
void LedgerBook::count(Instant now, Rank rank, Rank from, CallLedger& call,
                       const wire::DataHeader& header) {
  RankState& state = ranks_[rank];
  FlowLedger& flow = call.ranks[rank].flow(header.kind, from);
  const bool parity = header.is_parity();
  if (parity && flow.parities.empty()) {
    const wire::CodeGrid grid(flow.packets);
    flow.parity_seen.resize(grid.parities_max());
    flow.parities.resize(grid.codes());
  }
  const std::uint32_t index = header.index.value - (parity ? flow.packets : 0);
  const bool first = !(parity ? flow.parity_seen : flow.seen).test_and_set(index);
  const bool late = may_be_late(now, rank, call, flow, header);
  const bool repaired = !parity && header.attempt > 0;
  // Every copy is looked at, because a later copy may end the pass although the first did not.
  const bool ended = header.ends_first_pass() && flow.note_end(state.batch);
  state.items.push_back({.call = call.number,
                         .kind = header.kind,
                         .from = from,
                         .index = index,
                         .first = first,
                         .late = late,
                         .repaired = repaired,
                         .ended = ended,
                         .opens = state.batch_empty,
                         .parity = parity});
  if (parity) {
    flow.note_weight(header.weight, late);
    const std::uint32_t code = wire::CodeGrid(flow.packets).parity(index).code;
    flow.parities[code] += first;
    follow(rank, from, call, header.kind, code, late);
    return;
  }
  ++flow.copies;
  if (!first) return;
  ++flow.distinct;
  flow.repaired += repaired;
  flow.order.push_back({index, repaired});
  flow.note_weight(header.weight, late);
  if (late) {
    flow.maybe_late.set(index);
    ++flow.unsure;
  }
  if (header.kind == FlowKind::reduce) note_progress(rank, from, call, header);
  if (!flow.parities.empty())
    follow(rank, from, call, header.kind, wire::CodeGrid(flow.packets).code_of(header.index), late);
}

std::uint64_t LedgerBook::seed(Rank rank) const {
  return engine(rank).endpoint().config().seed;
}

// Counts the packets that can be computed from parity. Those are the missing packets of a code,
// once at least as many of its parity packets have come.
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
  if (std::isnan(flow.weight))
    flow.note_weight(end.weight, end.kind == FlowKind::reduce && now >= call->reduce_ends(rank));
  flow.note_end(ranks_[rank].batch);
}

void LedgerBook::on_report(Instant now, Rank rank, Rank from, const wire::Report& report) {
  for (const wire::OpenRound& entry : report.entries()) {
    // The failure of a lossy call that a deadline ended is not noted here, because the peer reports
    // it again once the call is open at this rank.
    const bool again = entry.tag.delivery != Delivery::Kind::exact &&
                       entry.failure == StatusCode::kDeadlineExceeded;
    if (entry.failed() && !entry.point_to_point && !again && entry.round >= ranks_[rank].opened)
      ranks_[rank].failed_before.try_emplace(entry.round, from);
  }
  CallLedger* const call = open_call(rank);
  if (call == nullptr) return;
  const auto ahead = static_cast<std::int32_t>(report.opened_below - call->number);
  if (ahead <= 0) return;
  for (const wire::OpenRound& entry : report.entries()) {
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

bool LedgerBook::take_back(Rank rank, std::uint64_t copies, bool failed) {
  CallLedger* const call = open_call(rank);
  std::vector<BatchItem>& items = ranks_[rank].items;
  for (; copies > 0 && !items.empty(); items.pop_back()) {
    const BatchItem& item = items.back();
    if (item.call != call->number) continue;
    FlowLedger& flow = call->ranks[rank].flow(item.kind, item.from);
    // The header of a batch's first packet may itself end the call, before the engine uses the
    // packet. A packet that must count cannot end the call that way. So the engine has used such a
    // packet, and it is not taken back.
    if (item.opens && item.first && !item.late && !item.parity && !failed) return false;
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
