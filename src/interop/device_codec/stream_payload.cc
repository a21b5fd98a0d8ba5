#include "device_codec/stream_payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "device_codec/orders.h"

namespace leeway::device_codec {
namespace {

using device::Site;
using device::Words;

// Least payload of a full packet: datagrams may be set to limits::kDatagramBytesMin bytes, and
// headers take at most 64 of them. Only the last packet of a block may have less.
constexpr std::size_t kPayloadBytesMin = limits::kDatagramBytesMin - 64;
// Limit on the number of elements by which a shard of an all_reduce exceeds an even part. Shards
// are cut at multiples of this number.
constexpr std::size_t kShardSlack = 64;
constexpr std::size_t kBoundary = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kBoundary - 1) / kBoundary * kBoundary;
}

// Upper bounds for elements that are cut into blocks and encoded: number of packets, and bytes.
struct Room {
  std::size_t packets = 0;
  std::size_t bytes = 0;
};
Room room_for(const codec::Format& format, std::size_t elements, std::size_t blocks) {
  Room room;
  room.packets = elements / format.elements_for(kPayloadBytesMin) + blocks;
  room.bytes =
      (format.blocks(elements) + blocks) * format.block_bytes + room.packets * format.header_bytes;
  return room;
}

}  // namespace

bool StreamPayload::supports(const CodecOptions& codec, DataType type, ReduceOp op, int size) {
  if (codec.codec == Codec::automatic || !codec::is_encodable(type)) return false;
  return (op == ReduceOp::sum || op == ReduceOp::avg) && size > 1 &&
         size <= static_cast<int>(kContributionsMax) &&
         Kernels::supports(codec::format_of(codec, type, codec::Purpose::sum));
}

StreamPayload::StreamPayload(const Kernels& kernels, const Call& call, Begin begin)
    : kernels_(kernels),
      call_(call),
      format_(codec::format_of(call.codec, call.type, codec::Purpose::sum)),
      begin_(std::move(begin)) {
  const auto ranks = static_cast<std::size_t>(call.size);
  const std::size_t jobs[kLists] = {ranks * sizeof(EncodeJob), sizeof(SumJob), sizeof(EncodeJob),
                                    sizeof(SumJob), ranks * sizeof(SumJob)};
  std::size_t at = aligned(kLists * sizeof(std::uint32_t));
  for (unsigned list = 0; list < kLists; ++list) {
    jobs_at_[list] = at;
    at += aligned(jobs[list]);
  }
  payload_at_ = at;
  const Room all = room_for(format_, call.elements, ranks);
  const Room own = room_for(format_, call.block_elements + kShardSlack, 1);
  const std::size_t parts = 4 * ranks;  // each part begins at a boundary
  at += all.bytes + (ranks - 1) * own.bytes;
  if (call.spreads) at += own.bytes + all.bytes;
  at += (ranks * own.packets + all.packets) * sizeof(float);
  staging_bytes_ = aligned(at + parts * kBoundary);
}

// ---- what is enqueued on streams, inside the user's call ----

template <typename Job>
JobList<Job> StreamPayload::list_of(List list, const Site& site, device::Word word,
                                    std::uint32_t packets) const {
  const auto see = [&](device::cuda::Address address) {
    return reinterpret_cast<const std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  return {.jobs = reinterpret_cast<const Job*>(see(site.mapped + jobs_at_[list])),
          .count = reinterpret_cast<const std::uint32_t*>(
              see(site.mapped + list * sizeof(std::uint32_t))),
          .word = reinterpret_cast<const std::uint32_t*>(see(site.signal.address(word))),
          .value = site.signal.value(),
          .packets_max = packets};
}

Status StreamPayload::encode(const Site& site, device::cuda::Stream stream) {
  const Room all = room_for(format_, call_.elements, 1);
  return kernels_.encode_listed(format_,
                                list_of<EncodeJob>(kContributions, site, &Words::begun,
                                                   static_cast<std::uint32_t>(all.packets)),
                                {stream, call_.multiprocessors});
}

Status StreamPayload::reduce(const Site& site, device::cuda::Stream stream) {
  const Launch launch{stream, call_.multiprocessors};
  const Room own = room_for(format_, call_.block_elements, 1);
  const auto packets = static_cast<std::uint32_t>(own.packets);
  Status status =
      kernels_.sum_listed(format_, list_of<SumJob>(kSum, site, &Words::landed, packets), launch);
  if (!call_.spreads) return status;
  // All ranks must hold the values that decode from the encoded sum, so this rank decodes it, too.
  if (status.ok())
    status = kernels_.encode_listed(
        format_, list_of<EncodeJob>(kSpread, site, &Words::landed, packets), launch);
  if (status.ok())
    status = kernels_.sum_listed(format_, list_of<SumJob>(kAdopt, site, &Words::landed, packets),
                                 launch);
  return status;
}

Status StreamPayload::decode(const Site& site, device::cuda::Stream stream) {
  if (!call_.spreads) return Status();
  const Room all = room_for(format_, call_.elements, 1);
  return kernels_.sum_listed(
      format_,
      list_of<SumJob>(kDecode, site, &Words::done, static_cast<std::uint32_t>(all.packets)),
      {stream, call_.multiprocessors});
}

// ---- the network's part ----

void StreamPayload::run(const Site& site) {
  site_ = site;
  begin_(shared_from_this(), [self = shared_from_this()](bool ok) { self->ended(ok); });
}

std::size_t StreamPayload::take_room(std::size_t bytes) {
  const std::size_t at = room_at_;
  room_at_ = aligned(at + bytes);
  return at;
}

std::byte* StreamPayload::on_device(std::size_t at) const {
  return reinterpret_cast<std::byte*>(site_.mapped + at);  // NOLINT(performance-no-int-to-ptr)
}

Status StreamPayload::begin(const PayloadLayout& layout) {
  layout_ = layout;
  room_at_ = payload_at_;
  const auto ranks = static_cast<std::size_t>(layout.size);
  contribution_at_.assign(ranks, 0);
  spread_factors_at_.assign(ranks, 0);
  sum_landing_.assign(ranks, nullptr);
  spread_landing_.assign(ranks, nullptr);
  for (Rank owner = 0; owner < ranks; ++owner) {
    if (owner == layout.rank) continue;
    contribution_at_[owner] = take_room(layout.reduce.bytes(owner));
  }
  spread_at_ = take_room(layout.spread.bytes(layout.rank));
  landing_at_ = take_room(layout.landing_bytes());
  factors_at_ = room_at_;
  for (Rank owner = 0; owner < ranks; ++owner)
    spread_factors_at_[owner] = take_room(layout.spread.packets(owner) * sizeof(float));
  sum_factors_at_ = take_room(ranks * layout.reduce.packets(layout.rank) * sizeof(float));
  chunks_left_ = layout.chunks(PayloadHalf::reduce, layout.rank);
  const bool as_planned =
      layout.size == call_.size && layout.dtype == call_.type &&
      layout.reduce.codec == format_.named() && layout.spread.blocks.empty() != call_.spreads &&
      (!call_.spreads || layout.spread.codec == format_.named()) && room_at_ <= staging_bytes_;
  if (as_planned) return Status();
  return Status::error(StatusCode::kInternal,
                       "kernels were told of another call: %zu bytes of staging, %zu needed",
                       staging_bytes_, room_at_);
}

Result<MutableByteSpan> StreamPayload::landing(const PayloadLayout& layout) {
  std::memset(site_.staging + factors_at_, 0, room_at_ - factors_at_);
  write_contributions();
  site_.signal.tell(&Words::begun);
  if (chunks_left_ == 0) write_sums();
  return MutableByteSpan(site_.staging + landing_at_, layout.landing_bytes());
}

template <typename Job>
void StreamPayload::write(List list, const std::vector<Job>& jobs) {
  std::byte* at = site_.staging + jobs_at_[list];
  for (const Job& job : jobs) {
    std::memcpy(at, &job, used_bytes(job));
    at += sizeof(Job);
  }
  const auto count = static_cast<std::uint32_t>(jobs.size());
  std::memcpy(site_.staging + list * sizeof count, &count, sizeof count);
}

Packets StreamPayload::packets_of(PayloadHalf half, Rank owner) const {
  const PayloadLayout::Half& side = layout_.half(half);
  return {.elements = side.blocks[owner].elements,
          .packet_elements = side.packet_elements,
          .packet_bytes = static_cast<std::uint32_t>(side.packet_bytes(side.packet_elements)),
          .count = side.packets(owner)};
}

const std::byte* StreamPayload::input_of(Rank owner) const {
  if (call_.input_pitch != 0) return call_.input + owner * call_.input_pitch;
  return call_.input + layout_.reduce.blocks[owner].offset * size_of(call_.type);
}

// Returns a rank's block in the output. Without a spread half the output is only the rank's own
// block.
std::byte* StreamPayload::output_of(Rank owner) const {
  if (!call_.spreads) return call_.output;
  return call_.output + layout_.spread.blocks[owner].offset * size_of(call_.type);
}

EncodeJob StreamPayload::encode_job(PayloadHalf half, Rank owner, const std::byte* elements,
                                    std::size_t out_at) const {
  EncodeJob job{.packets = packets_of(half, owner),
                .elements = elements,
                .out = on_device(out_at),
                .place = {layout_.seed, layout_.step, layout_.rank,
                          layout_.half(half).blocks[owner].position}};
  return job.set_format(format_);
}

// Place in staging of the factors of a rank's contribution to our block.
std::size_t StreamPayload::sum_factors_of(Rank rank) const {
  const std::size_t packets = layout_.reduce.packets(layout_.rank);
  return sum_factors_at_ + rank * packets * sizeof(float);
}

void StreamPayload::write_contributions() {
  std::vector<EncodeJob> jobs;
  for (Rank owner = 0; owner < layout_.size; ++owner) {
    if (owner == layout_.rank || layout_.reduce.blocks[owner].elements == 0) continue;
    jobs.push_back(
        encode_job(PayloadHalf::reduce, owner, input_of(owner), contribution_at_[owner]));
  }
  write(kContributions, jobs);
}

// Writes the jobs that sum and encode our block, when all contributions have landed or there are
// none.
void StreamPayload::write_sums() {
  const Rank self = layout_.rank;
  std::vector<SumJob> sums;
  std::vector<EncodeJob> spreads;
  std::vector<SumJob> adopts;
  if (layout_.reduce.blocks[self].elements > 0) {
    SumJob& sum = sums.emplace_back(SumJob{.packets = packets_of(PayloadHalf::reduce, self),
                                           .elements = output_of(self),
                                           .type = call_.type});
    for (Rank rank = 0; rank < layout_.size; ++rank) {
      const bool own = rank == self;
      const std::byte* const landed =
          own ? nullptr : on_device(static_cast<std::size_t>(sum_landing_[rank] - site_.staging));
      sum.contributions[sum.contributions_count++] = {
          .data = own ? input_of(self) : landed,
          .factors = reinterpret_cast<const float*>(on_device(sum_factors_of(rank))),
          .encoded = !own};
    }
  }
  if (call_.spreads && layout_.spread.blocks[self].elements > 0) {
    spreads.push_back(encode_job(PayloadHalf::spread, self, output_of(self), spread_at_));
    SumJob& adopt = adopts.emplace_back(SumJob{.packets = packets_of(PayloadHalf::spread, self),
                                               .elements = output_of(self),
                                               .type = call_.type,
                                               .contributions_count = 1});
    adopt.contributions[0] = {.data = on_device(spread_at_)};
  }
  write(kSum, sums);
  write(kSpread, spreads);
  write(kAdopt, adopts);
  site_.signal.tell(&Words::landed);
}

// Writes the jobs that decode other ranks' blocks. Missing packets become zeros. Packets are
// missing only if a rank fell silent, as spread halves of calls on streams are exact.
void StreamPayload::write_decodes() {
  std::vector<SumJob> jobs;
  for (Rank owner = 0; owner < layout_.size && call_.spreads; ++owner) {
    if (owner == layout_.rank || layout_.spread.blocks[owner].elements == 0) continue;
    SumJob& job = jobs.emplace_back(SumJob{.packets = packets_of(PayloadHalf::spread, owner),
                                           .elements = output_of(owner),
                                           .type = call_.type});
    if (spread_landing_[owner] == nullptr) continue;
    job.contributions_count = 1;
    job.contributions[0] = {
        .data = on_device(static_cast<std::size_t>(spread_landing_[owner] - site_.staging)),
        .factors = reinterpret_cast<const float*>(on_device(spread_factors_at_[owner]))};
  }
  write(kDecode, jobs);
}

void StreamPayload::ended(bool ok) {
  if (!ok || chunks_left_ != 0) return site_.signal.drop();
  write_decodes();
  site_.signal.finish();
}

// ---- chunks to send and chunks received: called while the operation runs ----

EncodedChunk StreamPayload::encoded(const PayloadChunk& chunk) {
  const bool contributes = chunk.half == PayloadHalf::reduce;
  if (!site_.signal.is(contributes ? &Words::ready : &Words::reduced)) return {};
  const PayloadLayout::Half& side = layout_.half(chunk.half);
  const std::size_t block = contributes ? contribution_at_[chunk.owner] : spread_at_;
  const std::size_t at =
      std::size_t{chunk.index} * side.chunk_packets * side.packet_bytes(side.packet_elements);
  return {site_.staging + block + at, chunk.bytes};
}

void StreamPayload::take(const PayloadChunk& chunk,
                         std::span<const PayloadContribution> contributions) {
  const PayloadLayout::Half& side = layout_.half(chunk.half);
  const std::size_t first = std::size_t{chunk.index} * side.chunk_packets;
  const std::size_t before = first * side.packet_bytes(side.packet_elements);
  const bool contributes = chunk.half == PayloadHalf::reduce;
  for (const PayloadContribution& one : contributions) {
    const std::size_t factors =
        contributes ? sum_factors_of(one.rank) : spread_factors_at_[chunk.owner];
    std::memcpy(site_.staging + factors + first * sizeof(float), one.scales.data(),
                one.scales.size_bytes());
    if (one.data == nullptr) continue;
    (contributes ? sum_landing_[one.rank] : spread_landing_[chunk.owner]) = one.data - before;
  }
  if (contributes && --chunks_left_ == 0) write_sums();
}

}  // namespace leeway::device_codec
