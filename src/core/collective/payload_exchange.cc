#include "collective/payload_exchange.h"

#include <algorithm>

#include "base/contracts.h"
#include "protocol/endpoint.h"

namespace leeway::collective {
namespace {

PayloadLayout::Half half_of(const OperationPlan& plan, const codec::Format& format) {
  const schedule::PacketGrid grid = plan.grid_of(0, format);
  return {.codec = format.named(),
          .packet_elements = grid.elements_per_packet(),
          .chunk_packets = grid.chunk_packets(),
          .header_bytes = format.header_bytes,
          .block_elements = format.block_elements,
          .block_bytes = format.block_bytes,
          .blocks = std::vector<PayloadLayout::Block>(static_cast<std::size_t>(plan.size))};
}

}  // namespace

PayloadLayout layout_of(const OperationPlan& plan, const protocol::Endpoint& endpoint,
                        std::uint32_t number) {
  PayloadLayout layout;
  layout.rank = plan.self;
  layout.size = plan.size;
  layout.dtype = plan.dtype;
  layout.seed = plan.seed;
  layout.step = plan.step;
  if (plan.round.phase(protocol::FlowKind::reduce).active) {
    const ReductionPlan& reduction = plan.reduction;
    layout.op = reduction.op;
    layout.reduce = half_of(plan, reduction.format);
    for (Rank owner = 0; owner < plan.size; ++owner) {
      const schedule::Shard shard = reduction.shards[owner];
      const auto grid = plan.grid_of(shard.count, reduction.format);
      const PacketIndex start = schedule::PacketCursor::start_of(
          grid, endpoint.order().rotation_key(number, protocol::FlowKind::reduce, owner));
      layout.reduce.blocks[owner] = {.offset = shard.offset,
                                     .elements = shard.count,
                                     .position = reduction.shards.position(owner),
                                     .first_chunk = grid.chunk_of(start).value};
    }
  }
  if (plan.round.phase(protocol::FlowKind::spread).active) {
    layout.spread = half_of(plan, plan.spread.format);
    for (Rank peer = 0; peer < plan.size; ++peer) {
      const auto take = [&](Rank owner, const Block& block) {
        if (block.elements == 0) return;
        layout.spread.blocks[owner] = {.offset = block.offset,
                                       .elements = block.elements,
                                       .position = block.position,
                                       .first_chunk = 0};
      };
      take(peer, plan.spread.receive[peer]);
      take(plan.self, plan.spread.send[peer]);
    }
  }
  return layout;
}

void PayloadExchange::begin(const PayloadAgreement& agreement, const char* name) {
  agreement_ = &agreement;
  name_ = name;
  const Rank self = layout().rank;
  const auto size = static_cast<std::size_t>(layout().size);
  contributions_.assign(size, {});
  ready_.resize(size);
  contribution_at_.assign(size, 0);
  spread_at_.assign(size, 0);
  landed_.resize(size);
  chunk_left_.assign(size, {});
  unencoded_ = 0;
  std::size_t at = 0;
  std::size_t chunks_taken = layout().chunks(PayloadHalf::reduce, self);
  for (Rank rank = 0; rank < layout().size; ++rank) {
    const std::uint32_t chunks =
        contributes_to(rank) ? layout().chunks(PayloadHalf::reduce, rank) : 0;
    contributions_[rank].chunks.assign(chunks, nullptr);
    ready_[rank].resize(chunks);
    unencoded_ += chunks;
    if (rank == self) continue;
    contribution_at_[rank] = at;
    at += layout().reduce.bytes(self);
  }
  for (Rank owner = 0; owner < layout().size; ++owner) {
    if (owner == self) continue;
    spread_at_[owner] = at;
    at += layout().spread.bytes(owner);
    landed_[owner].resize(layout().spread.packets(owner));
    const std::uint32_t chunks = layout().chunks(PayloadHalf::spread, owner);
    chunks_taken += chunks;
    for (std::uint32_t c = 0; c < chunks; ++c) {
      chunk_left_[owner].push_back(
          static_cast<std::uint16_t>(layout().chunk(PayloadHalf::spread, owner, c).packets));
    }
  }
  const std::uint32_t own_chunks = layout().chunks(PayloadHalf::spread, self);
  spread_ = {.chunks = std::vector<const std::byte*>(own_chunks, nullptr), .count = 0};
  expected_.reset(own_chunks);
  unencoded_ += own_chunks;
  scales_.assign(size * layout().reduce.packets(self), 0.0f);
  handed_.clear();
  handed_.reserve(chunks_taken);
  used_ = handed_seen_ = 0;
  handed_at_ = {};
}

bool PayloadExchange::contributes_to(Rank owner) const {
  return owner != layout().rank && !layout().reduce.blocks.empty();
}

ByteSpan PayloadExchange::packet(PayloadHalf half, Rank owner, PacketIndex index) const {
  const PayloadLayout::Half& side = layout().half(half);
  const Encoded& block = half == PayloadHalf::reduce ? contributions_[owner] : spread_;
  const std::byte* data = block.chunks[index.value / side.chunk_packets];
  LEEWAY_ASSERT(data != nullptr);
  const std::size_t first = std::size_t{index.value} * side.packet_elements;
  const std::size_t elements =
      std::min<std::size_t>(side.packet_elements, side.blocks[owner].elements - first);
  return {data + index.value % side.chunk_packets * side.packet_bytes(side.packet_elements),
          side.packet_bytes(elements)};
}

PayloadChunk PayloadExchange::next_contribution(Rank owner) const {
  const Encoded& block = contributions_[owner];
  const std::uint32_t first = layout().reduce.blocks[owner].first_chunk;
  return layout().chunk(PayloadHalf::reduce, owner,
                        static_cast<std::uint32_t>((first + block.count) % block.chunks.size()));
}

// Asks the source for `chunk`. If the chunk is ready, notes in `block` where it lies, and returns
// true. Sets `fault` if its length is wrong.
bool PayloadExchange::take_encoded(const PayloadChunk& chunk, Encoded& block, Status& fault) {
  const EncodedChunk encoded = agreement_->source->encoded(chunk);
  if (encoded.data == nullptr) return false;
  if (encoded.bytes != chunk.bytes) {
    fault = Status::error(StatusCode::kInvalidArgument,
                          "rank %u: %s: the payload source gave %zu bytes for chunk %u of the %s "
                          "rank %u, which has %zu",
                          layout().rank, name_, encoded.bytes, chunk.index, to_string(chunk.half),
                          chunk.owner, chunk.bytes);
    return false;
  }
  block.chunks[chunk.index] = encoded.data;
  ++block.count;
  --unencoded_;
  return true;
}

PayloadExchange::Progress PayloadExchange::ask(Instant now, schedule::ChunkQueue& available) {
  Progress progress;
  if (handed_.size() != handed_seen_) handed_at_ = now;
  handed_seen_ = handed_.size();
  while (used_ < handed_.size() && agreement_->sink->used(handed_[used_])) ++used_;
  if (unencoded_ == 0) return progress;
  for (Rank owner = 0; owner < layout().size && progress.fault.ok(); ++owner) {
    Encoded& block = contributions_[owner];
    while (block.count < block.chunks.size()) {
      const PayloadChunk chunk = next_contribution(owner);
      if (!take_encoded(chunk, block, progress.fault)) break;
      ready_[owner].set(chunk.index);
      progress.contributions = true;
    }
  }
  while (spread_.count < expected_.size() && progress.fault.ok()) {
    const ChunkIndex index = expected_[spread_.count];
    const PayloadChunk chunk = layout().chunk(PayloadHalf::spread, layout().rank, index.value);
    if (!take_encoded(chunk, spread_, progress.fault)) break;
    available.push(index);
    progress.spread = true;
  }
  return progress;
}

std::byte* PayloadExchange::place(PayloadHalf half, Rank from, PacketIndex index) const {
  const PayloadLayout::Half& side = layout().half(half);
  const std::size_t base = half == PayloadHalf::reduce ? contribution_at_[from] : spread_at_[from];
  return agreement_->landing.data() + base + index.value * side.packet_bytes(side.packet_elements);
}

void PayloadExchange::set_scales(PacketIndex index, std::span<const float> scales) {
  const std::size_t packets = layout().reduce.packets(layout().rank);
  for (std::size_t rank = 0; rank < scales.size(); ++rank)
    scales_[rank * packets + index.value] = scales[rank];
}

void PayloadExchange::hand_over_reduced(ChunkIndex index) {
  const PayloadChunk chunk = layout().chunk(PayloadHalf::reduce, layout().rank, index.value);
  const PacketIndex first{chunk.index * layout().reduce.chunk_packets};
  const std::size_t packets = layout().reduce.packets(layout().rank);
  terms_.clear();
  for (Rank rank = 0; rank < layout().size; ++rank) {
    const bool own = rank == layout().rank;
    terms_.push_back(
        {.rank = rank,
         .data = own ? nullptr : place(PayloadHalf::reduce, rank, first),
         .scales = std::span(scales_).subspan(rank * packets + first.value, chunk.packets)});
  }
  hand_over(chunk);
}

void PayloadExchange::note_spread(Rank owner, PacketIndex index) {
  if (landed_[owner].test_and_set(index.value)) return;
  const std::uint32_t chunk = index.value / layout().spread.chunk_packets;
  if (--chunk_left_[owner][chunk] == 0) hand_over_spread(owner, chunk);
}

void PayloadExchange::settle_spread() {
  for (Rank owner = 0; owner < layout().size; ++owner) {
    for (std::uint32_t c = 0; c < chunk_left_[owner].size(); ++c) {
      if (chunk_left_[owner][c] == 0) continue;
      chunk_left_[owner][c] = 0;
      hand_over_spread(owner, c);
    }
  }
}

void PayloadExchange::hand_over_spread(Rank owner, std::uint32_t index) {
  const PayloadChunk chunk = layout().chunk(PayloadHalf::spread, owner, index);
  const PacketIndex first{index * layout().spread.chunk_packets};
  arrived_.clear();
  for (std::uint32_t i = 0; i < chunk.packets; ++i)
    arrived_.push_back(landed_[owner].test(first.value + i) ? 1.0f : 0.0f);
  terms_.assign(
      1, {.rank = owner, .data = place(PayloadHalf::spread, owner, first), .scales = arrived_});
  hand_over(chunk);
}

void PayloadExchange::hand_over(const PayloadChunk& chunk) {
  handed_.push_back(chunk);
  agreement_->sink->take(chunk, terms_);
}

std::string PayloadExchange::awaited() const {
  const auto text = [](const char* who, const PayloadChunk& chunk, const char* what) {
    return std::string(who) + " has not " + what + " chunk " + std::to_string(chunk.index) +
           " of the " + to_string(chunk.half) + " rank " + std::to_string(chunk.owner);
  };
  for (Rank owner = 0; owner < layout().size; ++owner) {
    const Encoded& block = contributions_[owner];
    if (block.count < block.chunks.size())
      return text("the payload source", next_contribution(owner), "encoded");
  }
  if (used_ < handed_.size()) return text("the payload sink", handed_[used_], "used");
  if (spread_.count < expected_.size()) {
    const auto index = expected_[spread_.count].value;
    return text("the payload source", layout().chunk(PayloadHalf::spread, layout().rank, index),
                "encoded");
  }
  return {};
}

}  // namespace leeway::collective
