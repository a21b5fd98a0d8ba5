#include "endpoint/abstract_plan.h"

#include <algorithm>

#include "codec/codec.h"
#include "protocol/train_buffer.h"
#include "schedule/shard_map.h"
#include "wire/packet.h"

namespace leeway::sim {
namespace {

// src/collective/operation.cc: tensors up to this size are copied, so that their caller soon goes
// on.
constexpr std::uint64_t kCopyBytesMax = 64 * 1024;

constexpr double kNanosecondsPerMillisecond = 1e6;

std::uint32_t words_of(std::uint32_t packets) {
  return (packets + 63) / 64;
}

Delivery::Kind kind_of(scenario::Delivery::Kind kind) {
  switch (kind) {
    case scenario::Delivery::exact:
      return Delivery::Kind::exact;
    case scenario::Delivery::bounded:
      return Delivery::Kind::bounded;
    case scenario::Delivery::best_effort:
      return Delivery::Kind::best_effort;
  }
  return Delivery::Kind::exact;
}

Duration milliseconds(double ms) {
  return Duration(static_cast<std::int64_t>(ms * kNanosecondsPerMillisecond + 0.5));
}

bool depends_on_packet_only(Estimator estimator) {
  return estimator == Estimator::zero_fill || estimator == Estimator::ratio ||
         estimator == Estimator::stratified;
}

bool reduces(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
         kind == CallKind::replica_reduce;
}

bool spreads(CallKind kind) {
  return kind == CallKind::all_reduce || !reduces(kind);
}

schedule::ShardMap shards_of(CallKind kind, std::size_t elements, std::uint32_t ranks) {
  const int size = static_cast<int>(ranks);
  switch (kind) {
    case CallKind::all_reduce:
    case CallKind::replica_reduce:
    case CallKind::replica_broadcast:
      return schedule::ShardMap::even(elements, size);
    case CallKind::broadcast:
      return schedule::ShardMap::single(elements, 0);
    default:
      break;
  }
  const std::size_t block = elements / ranks;
  return block == 0 ? schedule::ShardMap::even(0, size) : schedule::ShardMap::blocks(block, size);
}

codec::Format format_of(const CodecOptions& options) {
  CodecOptions chosen = options;
  // What `automatic` starts with.
  if (chosen.codec == Codec::automatic) chosen.codec = Codec::fp8_e4m3_block;
  return codec::format_of(chosen, DataType::f32);
}

void cut(AbstractHalf& half, const codec::Format& format, const schedule::ShardMap& shards,
         std::uint32_t datagram_bytes, std::uint32_t ranks) {
  const auto per_packet =
      static_cast<std::uint32_t>(format.elements_for(datagram_bytes - wire::kDataHeaderBytes));
  half.full_bytes =
      static_cast<std::uint32_t>(wire::kDataHeaderBytes + format.encoded_bytes(per_packet));
  half.train_packets = static_cast<std::uint32_t>(
      std::min(protocol::TrainBuffer::kTrainDatagramsMax,
               protocol::TrainBuffer::kTrainBytesMax / std::size_t{half.full_bytes}));
  std::uint32_t words = 0;
  for (std::uint32_t owner = 0; owner < ranks; ++owner) {
    const schedule::PacketGrid grid(shards[static_cast<Rank>(owner)].count, per_packet, 4);
    const std::uint32_t packets = grid.packets();
    half.grids.push_back(grid);
    half.packets.push_back(packets);
    const std::size_t last = packets == 0 ? 0 : grid.packet_elements(packets - 1);
    half.last_bytes.push_back(
        static_cast<std::uint32_t>(wire::kDataHeaderBytes + format.encoded_bytes(last)));
    half.ledger_words.push_back(words);
    words += words_of(packets);
  }
  half.ledger_words.push_back(words);
}

struct Request {
  CodecOptions codec;
  CodecOptions spread_codec;
  Delivery delivery;
};

Request request_of(const AbstractOperation& operation, CallKind kind) {
  if (kind == CallKind::replica_broadcast)
    return {operation.replica_codec, operation.replica_codec, operation.replica_delivery};
  Request request{operation.codec, operation.spread_codec, operation.delivery};
  // What is not summed cannot be estimated from a part: a lossy class counts there only where it
  // was asked for.
  if (!reduces(kind)) {
    request.spread_codec = operation.codec;
    if (!operation.delivery_given) request.delivery.kind = Delivery::Kind::exact;
  }
  return request;
}

}  // namespace

std::uint32_t AbstractPlan::ledger_at(int half, std::uint32_t from, std::uint32_t to) const {
  const AbstractHalf& reduce = halves[kReduceHalf];
  const std::uint32_t each = reduce.active ? words_of(reduce.packets[to]) : 0;
  if (half == kReduceHalf) return from * each;
  return ranks * each + halves[kSpreadHalf].ledger_words[from];
}

std::uint32_t AbstractPlan::ledger_words(std::uint32_t to) const {
  const AbstractHalf& reduce = halves[kReduceHalf];
  const AbstractHalf& spread = halves[kSpreadHalf];
  const std::uint32_t each = reduce.active ? words_of(reduce.packets[to]) : 0;
  return ranks * each + (spread.active ? spread.ledger_words.back() : 0);
}

Result<AbstractOperation> AbstractOperation::make(const scenario::Operation& operation) {
  AbstractOperation made;
  const auto codec = parse_codec(operation.codec());
  if (!codec.ok()) return codec.status();
  const auto spread_codec =
      parse_codec(operation.has_spread_codec() ? operation.spread_codec() : operation.codec());
  if (!spread_codec.ok()) return spread_codec.status();
  const auto replica_codec = parse_codec(operation.replica().codec());
  if (!replica_codec.ok()) return replica_codec.status();
  const auto estimator =
      parse_estimator(scenario::Operation::Estimator_Name(operation.estimator()));
  if (!estimator.ok()) return estimator.status();
  made.codec = *codec;
  made.spread_codec = *spread_codec;
  made.replica_codec = *replica_codec;
  made.estimator = *estimator;
  made.delivery = {kind_of(operation.delivery().kind()), operation.delivery().loss_max(),
                   milliseconds(operation.delivery().deadline_ms())};
  made.delivery_given = operation.delivery().has_kind();
  made.spread = kind_of(operation.spread());
  made.replica_delivery = {kind_of(operation.replica().delivery()), 1.0,
                           milliseconds(operation.replica().deadline_ms())};
  made.residual = operation.error_feedback();
  made.datagram_bytes = operation.datagram_bytes();
  return made;
}

AbstractPlan make_abstract_plan(const AbstractOperation& operation, CallKind kind,
                                std::uint64_t bytes, std::uint32_t ranks) {
  const Request request = request_of(operation, kind);
  const std::size_t elements = bytes / sizeof(float);
  const schedule::ShardMap shards = shards_of(kind, elements, ranks);
  const bool small = bytes <= kCopyBytesMax && !operation.residual;
  AbstractPlan plan;
  plan.kind = kind;
  plan.bytes = bytes;
  plan.ranks = ranks;
  plan.delivery = request.delivery.kind;
  plan.deadline_ns = request.delivery.deadline.count();
  const bool lossy = plan.delivery != Delivery::Kind::exact;
  // A lossy reduction leaves the second half of the call's time to the spread.
  const bool shares_time = kind == CallKind::all_reduce && lossy;
  plan.reduce_deadline_ns = shares_time ? plan.deadline_ns / 2 : plan.deadline_ns;
  plan.sums_early = !lossy || depends_on_packet_only(operation.estimator);
  plan.sums_passed = plan.delivery == Delivery::Kind::best_effort && ranks > 1 &&
                     depends_on_packet_only(operation.estimator);
  if (reduces(kind)) {
    AbstractHalf& half = plan.halves[kReduceHalf];
    half.active = true;
    half.delivery = plan.delivery;
    half.loss_max = request.delivery.loss_max;
    half.repairable = plan.delivery != Delivery::Kind::best_effort;
    half.retained = small && kind != CallKind::all_reduce;
    cut(half, format_of(request.codec), shards, operation.datagram_bytes, ranks);
  }
  if (spreads(kind)) {
    AbstractHalf& half = plan.halves[kSpreadHalf];
    const codec::Format format = format_of(request.spread_codec);
    half.active = true;
    half.delivery = kind == CallKind::all_reduce ? operation.spread : plan.delivery;
    half.loss_max = request.delivery.loss_max;
    half.repairable =
        half.delivery != Delivery::Kind::best_effort || kind == CallKind::replica_broadcast;
    half.retained = kind != CallKind::all_to_all && (!format.identity() || small);
    half.streaming = reduces(kind);
    cut(half, format, shards, operation.datagram_bytes, ranks);
  }
  return plan;
}

}  // namespace leeway::sim
