#include "collective/host_payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/contracts.h"
#include "base/growing_buffer.h"
#include "codec/reduce.h"
#include "collective/scaled_sum.h"

namespace leeway::collective {
namespace {

// One packet of a chunk.
struct PacketOf {
  std::size_t first = 0;  // element in the chunk
  std::size_t elements = 0;
  std::size_t at = 0;  // byte in the encoded chunk
};

PacketOf packet_of(const PayloadLayout::Half& half, const PayloadChunk& chunk, std::uint32_t i) {
  const std::size_t first = std::size_t{i} * half.packet_elements;
  return {.first = first,
          .elements = std::min<std::size_t>(half.packet_elements, chunk.elements - first),
          .at = i * half.packet_bytes(half.packet_elements)};
}

}  // namespace

std::vector<PayloadChunk> HostPayload::chunks() const {
  std::vector<PayloadChunk> order;
  const auto add = [&](PayloadHalf half, Rank owner, std::uint32_t nth) {
    const std::uint32_t count = layout_.chunks(half, owner);
    if (nth >= count) return false;
    const std::uint32_t first = layout_.half(half).blocks[owner].first_chunk;
    order.push_back(layout_.chunk(half, owner, (first + nth) % count));
    return true;
  };
  for (std::uint32_t nth = 0; !layout_.reduce.blocks.empty(); ++nth) {
    bool any = false;
    for (int step = 1; step < layout_.size; ++step)
      any |= add(PayloadHalf::reduce, static_cast<Rank>((layout_.rank + step) % layout_.size), nth);
    if (!any) break;
  }
  if (!layout_.reduce.blocks.empty()) return order;
  for (std::uint32_t nth = 0; add(PayloadHalf::spread, layout_.rank, nth);) ++nth;
  return order;
}

HostPayload::Encoded& HostPayload::encoded_of(const PayloadChunk& chunk) {
  return chunk.half == PayloadHalf::reduce ? contributions_[chunk.owner] : spread_;
}

void HostPayload::set_up(PayloadHalf half, Rank owner, Encoded& encoded) {
  const std::uint32_t chunks = layout_.chunks(half, owner);
  encoded.ready.assign(chunks, false);
  encoded.at.clear();
  std::size_t at = 0;
  for (std::uint32_t c = 0; c < chunks; ++c) {
    encoded.at.push_back(at);
    at += layout_.chunk(half, owner, c).bytes;
  }
  encoded.bytes.resize(at);
}

Status HostPayload::begin(const PayloadLayout& layout) {
  layout_ = layout;
  if (!layout.reduce.blocks.empty() && !layout.spread.blocks.empty()) {
    const std::size_t first = layout.spread.blocks[layout.rank].offset;
    tensors_.own_block =
        static_cast<std::byte*>(tensors_.output.data) + first * size_of(layout.dtype);
  }
  reduce_format_ = codec::format_of(layout.reduce.codec, layout.dtype);
  spread_format_ = codec::format_of(layout.spread.codec, layout.dtype);
  contributions_.resize(static_cast<std::size_t>(layout.size));
  for (Rank owner = 0; owner < layout.size; ++owner) {
    if (owner != layout.rank) set_up(PayloadHalf::reduce, owner, contributions_[owner]);
  }
  set_up(PayloadHalf::spread, layout.rank, spread_);
  reduced_.assign(layout.chunks(PayloadHalf::reduce, layout.rank), false);
  return Status();
}

Result<MutableByteSpan> HostPayload::landing(const PayloadLayout& layout) {
  landing_.resize(layout.landing_bytes());
  return MutableByteSpan(landing_);
}

// Returns the address of the chunk's elements: in the input for the reduce half, else in this
// rank's block.
std::byte* HostPayload::element_of(const PayloadChunk& chunk) const {
  const std::size_t element = size_of(layout_.dtype);
  if (chunk.half == PayloadHalf::spread) return tensors_.own_block + chunk.first_element * element;
  const std::size_t first = layout_.reduce.blocks[chunk.owner].offset + chunk.first_element;
  return static_cast<std::byte*>(const_cast<void*>(tensors_.input.data)) + first * element;
}

void HostPayload::encode(const PayloadChunk& chunk) {
  const bool contributes = chunk.half == PayloadHalf::reduce;
  const codec::Format& format = contributes ? reduce_format_ : spread_format_;
  const PayloadLayout::Half& half = layout_.half(chunk.half);
  const std::size_t element = size_of(layout_.dtype);
  Encoded& encoded = encoded_of(chunk);
  std::byte* out = encoded.bytes.data() + encoded.at[chunk.index];
  std::byte* in = element_of(chunk);
  GrowingBuffer products;
  products.reserve(half.packet_elements * element);
  for (std::uint32_t i = 0; i < chunk.packets; ++i) {
    const PacketOf packet = packet_of(half, chunk, i);
    const codec::Place place{layout_.seed, layout_.step, layout_.rank,
                             chunk.position + packet.first};
    MutableByteSpan values(in + packet.first * element, packet.elements * element);
    if (contributes && !(tensors_.factor == Scalar(1))) {
      const MutableByteSpan multiplied(products.data(), values.size());
      codec::multiply(layout_.dtype, tensors_.factor, values, multiplied);
      values = multiplied;
    }
    const MutableByteSpan bytes(out + packet.at, half.packet_bytes(packet.elements));
    if (format.identity()) {
      std::memcpy(bytes.data(), values.data(), values.size());
      continue;
    }
    codec::encode_elements(format, values, place, bytes);
    if (!contributes && tensors_.adopt) codec::decode_elements(format, bytes, place, values);
  }
  std::lock_guard lock(mutex_);
  encoded.ready[chunk.index] = true;
}

EncodedChunk HostPayload::encoded(const PayloadChunk& chunk) {
  std::lock_guard lock(mutex_);
  const Encoded& encoded = encoded_of(chunk);
  if (!encoded.ready[chunk.index]) return {};
  return {encoded.bytes.data() + encoded.at[chunk.index], chunk.bytes};
}

void HostPayload::take(const PayloadChunk& chunk,
                       std::span<const PayloadContribution> contributions) {
  Task task{.chunk = chunk, .contributions = {}, .scales = {}};
  for (const PayloadContribution& contribution : contributions) {
    task.contributions.push_back(contribution);
    task.scales.insert(task.scales.end(), contribution.scales.begin(), contribution.scales.end());
  }
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  ++handed_;
}

bool HostPayload::used(const PayloadChunk&) {
  std::lock_guard lock(mutex_);
  if (asked_ == used_) return false;
  ++asked_;
  return true;
}

std::size_t HostPayload::unused() {
  std::lock_guard lock(mutex_);
  return handed_ - used_;
}

std::optional<HostPayload::Task> HostPayload::next_task() {
  std::lock_guard lock(mutex_);
  if (tasks_.empty()) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

bool HostPayload::use() {
  const std::optional<Task> task = next_task();
  if (!task) return false;
  if (task->chunk.half == PayloadHalf::reduce) {
    sum(*task);
    reduced_[task->chunk.index] = true;
    encode_whole(task->chunk);
  } else {
    decode(*task);
  }
  std::lock_guard lock(mutex_);
  ++used_;
  return true;
}

void HostPayload::sum(const Task& task) {
  const PayloadChunk& chunk = task.chunk;
  const std::size_t element = size_of(layout_.dtype);
  const std::size_t offset =
      layout_.spread.blocks.empty() ? 0 : layout_.reduce.blocks[chunk.owner].offset;
  auto* result =
      static_cast<std::byte*>(tensors_.output.data) + (offset + chunk.first_element) * element;
  const bool floats = is_floating(layout_.dtype) &&
                      (layout_.op == ReduceOp::sum ||
                       (layout_.op == ReduceOp::avg && layout_.dtype != DataType::f64));
  GrowingBuffer own, scratch;
  own.reserve(layout_.reduce.packet_elements * element);
  for (std::uint32_t i = 0; i < chunk.packets; ++i) {
    const PacketOf packet = packet_of(layout_.reduce, chunk, i);
    std::vector<Term> terms;
    std::vector<const std::byte*> operands;
    for (std::size_t c = 0; c < task.contributions.size(); ++c) {
      const std::byte* data = task.contributions[c].data;
      const bool encoded = data != nullptr;
      if (encoded) {
        data += packet.at;
      } else {
        const ByteSpan values(element_of(chunk) + packet.first * element,
                              packet.elements * element);
        data = values.data();
        if (!(tensors_.factor == Scalar(1))) {
          codec::multiply(layout_.dtype, tensors_.factor, values, {own.data(), values.size()});
          data = own.data();
        }
      }
      operands.push_back(data);
      const float scale = task.scales[c * chunk.packets + i];
      if (scale != 0.0f) terms.push_back({data, scale, encoded});
    }
    const codec::Place place{layout_.seed, layout_.step, layout_.rank,
                             chunk.position + packet.first};
    const MutableByteSpan out(result + packet.first * element, packet.elements * element);
    if (floats) {
      scaled_sum(reduce_format_, place, layout_.dtype, terms, packet.elements, out, scratch,
                 /*check=*/false);
    } else {
      codec::reduce(layout_.op, layout_.dtype, operands, out);
    }
  }
}

// Encodes those chunks of this rank's block that became complete with the reduced chunk.
void HostPayload::encode_whole(const PayloadChunk& reduced) {
  const std::size_t end = reduced.first_element + reduced.elements;
  for (std::uint32_t c = 0; c < layout_.chunks(PayloadHalf::spread, layout_.rank); ++c) {
    const PayloadChunk chunk = layout_.chunk(PayloadHalf::spread, layout_.rank, c);
    const std::size_t chunk_end = chunk.first_element + chunk.elements;
    if (chunk.first_element >= end || chunk_end <= reduced.first_element) continue;
    bool whole = true;
    for (std::uint32_t r = 0; r < reduced_.size(); ++r) {
      const PayloadChunk part = layout_.chunk(PayloadHalf::reduce, layout_.rank, r);
      const bool apart = part.first_element >= chunk_end ||
                         part.first_element + part.elements <= chunk.first_element;
      whole &= apart || reduced_[r];
    }
    if (whole) encode(chunk);
  }
}

void HostPayload::decode(const Task& task) {
  const PayloadChunk& chunk = task.chunk;
  const PayloadContribution& contribution = task.contributions.front();
  const std::size_t element = size_of(layout_.dtype);
  const std::size_t first = layout_.spread.blocks[chunk.owner].offset + chunk.first_element;
  auto* out = static_cast<std::byte*>(tensors_.output.data) + first * element;
  for (std::uint32_t i = 0; i < chunk.packets; ++i) {
    const PacketOf packet = packet_of(layout_.spread, chunk, i);
    if (task.scales[i] == 0.0f) continue;
    const ByteSpan bytes(contribution.data + packet.at,
                         layout_.spread.packet_bytes(packet.elements));
    const MutableByteSpan values(out + packet.first * element, packet.elements * element);
    if (spread_format_.identity()) {
      std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      codec::decode_elements(
          spread_format_, bytes,
          {layout_.seed, layout_.step, chunk.owner, chunk.position + packet.first}, values);
    }
  }
}

}  // namespace leeway::collective
