#include "collective/operation_plan.h"

#include <algorithm>

#include "base/philox.h"
#include "collective/block_layout.h"
#include "collective/payload_exchange.h"
#include "estimate/link_history.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"
#include "wire/codec_settings.h"

namespace leeway::collective {
namespace {

using protocol::FlowKind;

// Tensors up to this many bytes are copied if the caller can then go on before receivers have
// confirmed. A copy of 64 KiB takes a few microseconds; a round trip takes tens.
constexpr std::size_t kCopyBytesMax = std::size_t{64} * 1024;

// Limit in place of kCopyBytesMax if owners may ask again for a whole flow. Without a copy the
// caller waits for the owners' confirmation. That costs half a round trip, and time-outs if reports
// are lost. A copy of 512 KiB takes 40 us.
constexpr std::size_t kFetchedBytesMax = std::size_t{512} * 1024;

// Stream of the keyed hash for messages (base/philox.h).
constexpr std::uint32_t kMessageStream = 0x70000000;

std::byte* bytes_of(const void* data) {
  return static_cast<std::byte*>(const_cast<void*>(data));
}

// Codec of the spread half, or of data that is only moved.
CodecOptions spread_codec_of(const OperationSpec& spec) {
  return has_reduce_half(spec.kind) && has_spread_half(spec.kind)
             ? spec.options.spread_codec.value_or(spec.options.codec)
             : spec.options.codec;
}

// Sums need unbiased rounding, since the errors of many contributions add up. Copies need the least
// error.
codec::Purpose purpose_of(const OperationSpec& spec) {
  return has_reduce_half(spec.kind) ? codec::Purpose::sum : codec::Purpose::copy;
}

// Returns true if a rank sends the same block to all receivers.
bool same_block(OperationKind kind) {
  return kind != OperationKind::scatter && kind != OperationKind::all_to_all;
}

// Returns true if the operation's tensors are copied, so that the caller may go on before receivers
// have confirmed.
bool is_small(const OperationSpec& spec) {
  // An exchange waits until receivers have confirmed, so a copy would be of no use.
  if (spec.grouped) return false;
  // Each packet that leaves is encoded and updates the caller's residual, so the caller must wait.
  return spec.options.residual.empty() &&
         std::max(spec.input.bytes(), spec.output.bytes()) <= kCopyBytesMax;
}

// Returns true for estimators that divide by the share of a sender's packets that arrived. For them
// at least one packet of each sender must arrive.
bool needs_every_link(Estimator estimator) {
  return estimator == Estimator::horvitz_thompson || estimator == Estimator::augmented;
}

std::uint32_t longest_contribution(const OperationPlan& plan) {
  std::uint32_t longest = 0;
  for (Rank owner = 0; owner < plan.size; ++owner)
    longest = std::max(longest, plan.reduced_grid(owner).packets());
  return longest;
}

// Returns true if owners ask again for a contribution of which no packet arrived. The
// contribution's sender keeps the payload for that: in an all_reduce until the result has come,
// else in a copy or until owners confirm. Outside all_reduce only short flows are asked for, since
// a long flow is hardly ever lost whole.
bool fetches_empty(const OperationPlan& plan) {
  const ReductionPlan& reduction = plan.reduction;
  if (!reduction.one_pass || !needs_every_link(reduction.estimator)) return false;
  return plan.kind == OperationKind::all_reduce ||
         longest_contribution(plan) < estimate::kShortFlowPackets;
}

// Returns true if the reduce half keeps a copy of the input, so that the caller may overwrite the
// input before owners confirm. An all_reduce needs no copy, because its caller waits for the result
// anyway.
bool copies_input(const OperationSpec& spec, bool fetches_empty) {
  if (spec.kind == OperationKind::all_reduce || !spec.options.residual.empty()) return false;
  return is_small(spec) || (fetches_empty && spec.input.bytes() <= kFetchedBytesMax);
}

// Returns true if noise is measured. Float32 sums and averages that the library itself computes are
// measured if packets may be lost or values are encoded.
bool measures_noise(const OperationSpec& spec) {
  if (!has_reduce_half(spec.kind) || spec.input.dtype != DataType::f32) return false;
  if (!spec.contents || spec.elsewhere()) return false;
  if (!is_sum(spec.options.op)) return false;
  const auto encoded = [](const CodecOptions& options) {
    return options.codec > Codec::fp32 || options.rotate;
  };
  return spec.options.delivery.kind != Delivery::Kind::exact || encoded(spec.options.codec) ||
         encoded(spread_codec_of(spec));
}

// Keys a codec's random bits of a message by what both sides know: their ranks, and the message's
// tag and number. (The two ranks number operations differently.)
std::uint32_t message_step(const protocol::Endpoint& endpoint, const OperationSpec& spec) {
  const bool sends = spec.kind == OperationKind::send;
  const Rank self = endpoint.config().self;
  const std::uint32_t tag = spec.options.tag;
  const std::uint32_t number = endpoint.rounds().next_message(spec.peer, tag, sends);
  const std::uint64_t seed =
      tag == 0 ? endpoint.config().seed
               : keyed_hash(endpoint.config().seed, tag, kMessageStream, kNoRank, kNoRank);
  return static_cast<std::uint32_t>(
      keyed_hash(seed, number, kMessageStream, sends ? self : spec.peer, sends ? spec.peer : self));
}

// Returns true if the spread half's delivery class is CollectiveOptions::spread, and not that of
// the whole call.
bool has_own_spread(const OperationSpec& spec) {
  return spec.kind == OperationKind::all_reduce || spec.lenient;
}

// Returns the codec that the operation's tag names. A codec that does not change elements of this
// type counts as native.
CodecOptions told_codec(const CodecOptions& options, DataType dtype) {
  // Only a stand-in still has Codec::automatic here. The tag of the call itself names the codec
  // that was chosen.
  if (options.codec == Codec::automatic) return {};
  return codec::format_of(options, dtype).identity() ? CodecOptions() : options;
}

// Returns the tag by which ranks compare their calls. Options without effect on this call are set
// to defaults, as ranks may set them differently.
wire::OperationTag tag_of(const OperationSpec& spec) {
  if (point_to_point(spec.kind)) {
    wire::OperationTag tag = wire::tag_of_message(spec.kind == OperationKind::send);
    tag.dtype = dtype_of(spec);
    const CodecOptions codec = told_codec(spec.options.codec, tag.dtype);
    tag.codec = codec.codec;
    tag.codec_settings = wire::pack_settings(codec);
    tag.count = agreed_count(spec);
    return tag;
  }
  wire::OperationTag tag;
  tag.operation = spec.kind;
  tag.dtype = dtype_of(spec);
  const bool reduces = has_reduce_half(spec.kind);
  const CollectiveOptions defaults;
  tag.reduce_op = reduces ? spec.options.op : defaults.op;
  const CodecOptions codec = told_codec(spec.options.codec, tag.dtype);
  const CodecOptions spread_codec = told_codec(spread_codec_of(spec), tag.dtype);
  tag.codec = codec.codec;
  tag.codec_settings = wire::pack_settings(codec);
  tag.spread_codec = spread_codec.codec;
  tag.spread_settings = wire::pack_settings(spread_codec);
  tag.delivery = spec.options.delivery.kind;
  tag.spread = has_own_spread(spec) ? spec.options.spread : defaults.spread;
  const bool estimates = reduces && spec.options.delivery.kind != Delivery::Kind::exact;
  tag.estimator = estimates ? spec.options.estimator : defaults.estimator;
  tag.root = spec.peer;
  tag.count = agreed_count(spec);
  tag.parts = spec.parts;
  tag.confirm_use = spec.options.confirm_use;
  if (spec.kind == OperationKind::all_to_all && spec.uneven()) tag.shape = wire::kUnevenPairs;
  if (spec.kind == OperationKind::all_gather && spec.uneven())
    tag.shape = spec.output_blocks.digest();
  if (spec.kind == OperationKind::reduce_scatter && spec.uneven())
    tag.shape = spec.input_blocks.digest();
  return tag;
}

schedule::ShardMap uneven_shards_of(const OperationSpec& spec, OperationPlan& plan) {
  plan.uneven_shards.resize(plan.size);
  plan.uneven_positions.resize(plan.size);
  std::size_t position = 0;
  for (Rank rank = 0; rank < plan.size; ++rank) {
    const BlockList& blocks = spec.input_blocks;
    plan.uneven_shards[rank] = {blocks.offset(rank), blocks.count(rank)};
    plan.uneven_positions[rank] = position;
    position = schedule::ShardMap::position_behind(position, blocks.count(rank));
  }
  return schedule::ShardMap::uneven(spec.input.count, plan.uneven_shards, plan.uneven_positions);
}

// Returns the least number of elements in a shard of an all_reduce; only a shorter tensor has a
// shorter shard. It is what one datagram carries, in the half whose datagrams carry more elements.
// Each owner costs 2 (N - 1) messages among N ranks. So shorter shards, which have more owners,
// would take longer. With this rule, 4 KiB over UDP take 0.53, 0.55 and 0.55 of the time without
// it, at 4, 8 and 16 ranks (docs/measurements/collective.md). Longer shards would cost fewer
// messages still. But a whole shard leaves by one uplink, which takes longer than a round trip if
// the link is slow.
std::size_t fitting_shard(const OperationSpec& spec, const OperationPlan& plan) {
  std::size_t elements = 1;
  for (const CodecOptions& codec : {spec.options.codec, spread_codec_of(spec)}) {
    const codec::Format format = codec::format_of(codec, plan.dtype, purpose_of(spec));
    elements = std::max(elements, format.elements_for(plan.payload_bytes));
  }
  return elements;
}

schedule::ShardMap shards_of(const OperationSpec& spec, std::uint32_t number, OperationPlan& plan) {
  const int size = plan.size;
  switch (spec.kind) {
    case OperationKind::reduce_scatter:
      if (spec.uneven()) return uneven_shards_of(spec, plan);
      return schedule::ShardMap::blocks(spec.output.count, size);
    case OperationKind::reduce:
      return schedule::ShardMap::single(spec.input.count, spec.peer);
    case OperationKind::all_reduce:
      return schedule::ShardMap::few(spec.input.count, size, fitting_shard(spec, plan), number);
    default:
      return schedule::ShardMap::even(spec.input.count, size);
  }
}

// Decides which payloads get a checksum. `intact` is by rank, but a message's plan gives its
// receiver number 0. So a message gets no `intact`.
void plan_sums(const OperationSpec& spec, const protocol::EndpointConfig& config,
               OperationPlan& plan) {
  plan.intact = {};
  if (point_to_point(spec.kind)) {
    plan.sum_payloads = config.sums_to(spec.peer);
    return;
  }
  plan.sum_payloads = false;
  for (Rank rank = 0; rank < config.size && !plan.sum_payloads; ++rank)
    plan.sum_payloads = rank != config.self && config.sums_to(rank);
  plan.intact = config.intact;
}

// Plans the parts that both halves share.
void plan_common(const OperationSpec& spec, const protocol::EndpointConfig& config,
                 OperationPlan& plan) {
  plan.kind = spec.kind;
  plan.reduction = {};
  plan.dtype = dtype_of(spec);
  plan.payload_bytes = config.datagram_bytes - wire::kDataHeaderBytes;
  plan_sums(spec, config, plan);
  plan.contents = spec.contents;
  plan.seed = config.seed;
  const auto owner_weights = spec.options.owner_weights;
  plan.owner_weights.assign(owner_weights.begin(), owner_weights.end());
}

void plan_reduction(const OperationSpec& spec, const protocol::Endpoint& endpoint,
                    std::uint32_t number, OperationPlan& plan) {
  const CollectiveOptions& options = spec.options;
  ReductionPlan& reduction = plan.reduction;
  reduction.shards = shards_of(spec, number, plan);
  const schedule::Shard own = reduction.shards[plan.self];
  const bool premultiplied = options.op == ReduceOp::premul_sum;
  reduction.op = premultiplied ? ReduceOp::sum : options.op;
  if (premultiplied && options.factor != Scalar(1)) reduction.factor = options.factor;
  reduction.format = codec::format_of(options.codec, spec.input.dtype, purpose_of(spec));
  reduction.estimator = options.estimator;
  reduction.lossy = options.delivery.kind != Delivery::Kind::exact;
  reduction.one_pass = options.delivery.kind == Delivery::Kind::best_effort;
  reduction.finite_only = reduction.lossy && is_floating(spec.input.dtype) &&
                          !options.keep_non_finite && !spec.elsewhere();
  reduction.rotation_key = endpoint.order().rotation_key(number, FlowKind::reduce, plan.self);
  reduction.input = bytes_of(spec.input.data);
  reduction.result = bytes_of(spec.output.data);
  const bool in_place =
      spec.kind == OperationKind::all_reduce || spec.kind == OperationKind::replica_reduce;
  if (in_place && spec.contents && !spec.elsewhere())
    reduction.result += own.offset * size_of(plan.dtype);
  if (!options.control_variate.empty())
    reduction.control = options.control_variate.subspan(own.offset, own.count);
  reduction.residual = options.residual;
  reduction.fetch_empty = fetches_empty(plan);
  reduction.copy_input = !spec.elsewhere() && copies_input(spec, reduction.fetch_empty);
}

void plan_spread(const OperationSpec& spec, OperationPlan& plan) {
  SpreadPlan& spread = plan.spread;
  spread.format = codec::format_of(spread_codec_of(spec), plan.dtype, purpose_of(spec));
  spread.same_block = same_block(spec.kind);
  spread.elsewhere = spec.elsewhere();
  spread.streaming = has_reduce_half(spec.kind) || spread.elsewhere;
  spread.adopt = spec.kind == OperationKind::all_reduce || spec.kind == OperationKind::all_gather ||
                 spec.kind == OperationKind::broadcast ||
                 spec.kind == OperationKind::replica_broadcast;
  spread.copy_input = is_small(spec) && spread.same_block && !spread.elsewhere;
  spread.tells_empty = point_to_point(spec.kind) || agreed_count(spec) == 0;
  spread.meter_factor = spec.options.op == ReduceOp::avg ? 1.0 : 1.0 / plan.size;
  spread.send.assign(plan.size, {});
  spread.receive.assign(plan.size, {});
}

// Returns true if first passes may end with parity. Without pacing links are fast and near, so
// repair requests take less time than parity.
bool may_be_coded(const protocol::EndpointConfig& config, const protocol::PhasePlan& phase,
                  std::uint32_t longest) {
  return config.paced && phase.delivery == Delivery::Kind::exact &&
         longest > limits::kEagerPackets && longest <= limits::kCodedFlowPacketsMax;
}

std::uint32_t longest_block(const OperationPlan& plan) {
  std::uint32_t longest = 0;
  for (const std::vector<Block>* blocks : {&plan.spread.send, &plan.spread.receive}) {
    for (const Block& block : *blocks)
      longest = std::max(longest, plan.grid_of(block.elements, plan.spread.format).packets());
  }
  return longest;
}

void plan_reduce_phase(const OperationSpec& spec, const protocol::EndpointConfig& config,
                       Instant submitted, OperationPlan& plan) {
  const Delivery& delivery = spec.options.delivery;
  protocol::PhasePlan& phase = plan.round.phase(FlowKind::reduce);
  phase.active = true;
  phase.delivery = delivery.kind;
  phase.loss_max = delivery.loss_max;
  // The reduce half of a lossy all_reduce must end in the first half of the call's time.
  const bool halves =
      spec.kind == OperationKind::all_reduce && delivery.kind != Delivery::Kind::exact;
  phase.deadline = halves ? overdue_at(submitted, delivery.deadline / 2) : plan.round.deadline;
  phase.codec = plan.round.tag.codec;
  phase.fetch_empty = plan.reduction.fetch_empty;
  phase.repairable = delivery.kind != Delivery::Kind::best_effort || phase.fetch_empty;
  phase.coded = !spec.elsewhere() && may_be_coded(config, phase, longest_contribution(plan));
  // Parity is computed from the input, which results may overwrite before all parity has left.
  plan.reduction.copy_input |= phase.coded;
  // With a residual the call is not done before receivers confirm, because a packet that is sent
  // again writes the caller's residual again.
  phase.payload_retained = plan.reduction.copy_input && plan.reduction.residual.empty();
  if (plan.payload != nullptr) phase.ready = plan.payload->ready();
}

void plan_spread_phase(const OperationSpec& spec, const protocol::EndpointConfig& config,
                       FlowKind kind, OperationPlan& plan) {
  const Delivery& delivery = spec.options.delivery;
  protocol::PhasePlan& phase = plan.round.phase(kind);
  phase.active = true;
  phase.delivery = has_own_spread(spec) ? spec.options.spread : delivery.kind;
  // The bounded spread of an all_reduce is repaired until nothing is missing or the deadline has
  // come.
  phase.loss_max = spec.kind == OperationKind::all_reduce ? 0.0 : delivery.loss_max;
  phase.deadline = plan.round.deadline;
  phase.codec = point_to_point(spec.kind) ? plan.round.tag.codec : plan.round.tag.spread_codec;
  phase.repairable = phase.delivery != Delivery::Kind::best_effort || spec.ledger != nullptr;
  // A long send is done only when its receiver confirms, even if we have a copy of the block. So
  // the sender hears of a receive that is too short.
  phase.payload_retained =
      plan.spread.sends_own_copy() && (!point_to_point(spec.kind) || is_small(spec));
  phase.same_for_all = plan.spread.same_block && kind == FlowKind::spread;
  // A block that is encoded for one receiver is not kept in encoded form. It has no parity, because
  // that would need a second encoding.
  const bool kept = plan.spread.format.identity() || plan.spread.same_block;
  phase.coded = kind == FlowKind::spread && kept && !plan.spread.elsewhere &&
                spec.ledger == nullptr && may_be_coded(config, phase, longest_block(plan));
}

void plan_round(const OperationSpec& spec, Instant submitted, OperationPlan& plan) {
  const Delivery& delivery = spec.options.delivery;
  protocol::RoundPlan& round = plan.round;
  round = {};
  round.tag = tag_of(spec);
  round.name = to_string(spec.whole ? spec.whole->kind : spec.kind);
  if (spec.whole) round.number_said = spec.whole->number;
  round.deadline_length = delivery.deadline;
  round.deadline_said = spec.whole ? spec.whole->deadline : delivery.deadline;
  round.deadline = overdue_at(submitted, delivery.deadline);
  round.weight = spec.options.weight;
  round.pair_sends = plan.pair_sends;
  round.pair_receives = plan.pair_receives;
  round.owner_weights = plan.owner_weights;
  round.needs_every_rank = spec.kind == OperationKind::all_reduce;
  round.confirm_use = spec.options.confirm_use && has_reduce_half(spec.kind) &&
                      delivery.kind != Delivery::Kind::exact;
}

// Lists what this rank sends to and expects from each rank in an uneven all_to_all. Peers compare
// these counts, since each rank knows only its own.
void plan_pairs(const OperationSpec& spec, OperationPlan& plan) {
  plan.pair_sends.clear();
  plan.pair_receives.clear();
  if (spec.kind != OperationKind::all_to_all || !spec.uneven()) return;
  for (Rank rank = 0; rank < plan.size; ++rank) {
    plan.pair_sends.push_back(spec.input_blocks.count(rank));
    plan.pair_receives.push_back(spec.output_blocks.count(rank));
  }
}

// Returns the largest number of elements that one rank sends to another. If an all_reduce has few
// owners (ShardMap::few()), their shards are longer than assumed here, but far from the limit.
std::size_t longest_flow(const OperationSpec& spec, int size) {
  switch (spec.kind) {
    case OperationKind::all_reduce:
    case OperationKind::replica_reduce:
    case OperationKind::replica_broadcast:
      return schedule::ShardMap::even(spec.input.count, size)[0].count;
    case OperationKind::reduce_scatter:
      return spec.uneven() ? spec.input_blocks.longest() : spec.output.count;
    case OperationKind::all_gather:
      return spec.uneven() ? spec.output_blocks.longest() : spec.input.count;
    case OperationKind::all_to_all:
      if (!spec.uneven()) return spec.input.count / static_cast<std::size_t>(size);
      return std::max(spec.input_blocks.longest(), spec.output_blocks.longest());
    case OperationKind::scatter:
    case OperationKind::recv:
      return spec.output.count;
    case OperationKind::broadcast:
    case OperationKind::reduce:
    case OperationKind::gather:
    case OperationKind::send:
    case OperationKind::barrier:
    case OperationKind::split:
    case OperationKind::exchange:
      break;
  }
  return spec.input.count;
}

// Returns true if the ranks meet through one rank, which takes 2 (N - 1) messages instead of N (N -
// 1). On one host the ranks share processors, so fewer messages save more than the second hop
// costs. Between hosts it takes less time if each rank sends to all others.
bool goes_through_one_rank(const OperationSpec& spec, const protocol::EndpointConfig& config) {
  const bool meets = spec.kind == OperationKind::barrier || is_empty(spec);
  return meets && spec.options.delivery.kind == Delivery::Kind::exact && config.one_host &&
         config.size > 2;
}

// Replaces a call without elements by a meeting: each rank sends an empty packet to each other
// rank, in the call's delivery class.
OperationSpec as_meeting(const OperationSpec& empty) {
  OperationSpec meeting{.kind = OperationKind::all_gather};
  meeting.input.dtype = meeting.output.dtype = DataType::u8;
  meeting.options.delivery = empty.options.delivery;
  meeting.contents = empty.contents;
  meeting.lenient = empty.lenient;
  return meeting;
}

// Turns a meeting (a barrier, or a call without elements) into an all_reduce of one byte. One byte
// has a single owner, so the ranks meet through this rank.
OperationSpec as_sum(const OperationSpec& meeting, std::byte* bytes) {
  OperationSpec sum = meeting;
  sum.kind = OperationKind::all_reduce;
  sum.input = {bytes, 1, DataType::u8};
  sum.output = {bytes + 1, 1, DataType::u8};
  return sum;
}

}  // namespace

Instant overdue_at(Instant submitted, Duration deadline) {
  return deadline > no_deadline / 4 ? Instant::infinite_future() : submitted + deadline;
}

void plan_halves(const OperationSpec& spec, Instant submitted, const protocol::Endpoint& endpoint,
                 const PlanContext& context, OperationPlan& plan) {
  plan_common(spec, endpoint.config(), plan);
  plan.self = endpoint.config().self;
  plan.size = endpoint.config().size;
  // The step is the number of the collective. Request::sequence would not do: it includes messages,
  // and so differs between ranks.
  plan.step = context.number;
  plan.meter = measures_noise(spec) ? &context.meter : nullptr;
  plan.payload = spec.elsewhere() ? context.payload : nullptr;
  plan_pairs(spec, plan);
  plan_round(spec, submitted, plan);
  if (has_reduce_half(spec.kind)) {
    plan_reduction(spec, endpoint, context.number, plan);
    plan_reduce_phase(spec, endpoint.config(), submitted, plan);
  }
  if (!has_spread_half(spec.kind)) return;
  plan_spread(spec, plan);
  place_blocks(spec, context.barrier, plan);
  plan_spread_phase(spec, endpoint.config(), FlowKind::spread, plan);
  if (plan.spread.streaming) plan.round.phase(FlowKind::spread).queue = &context.own_chunks;
}

Status check_flow_lengths(const OperationSpec& spec, const protocol::EndpointConfig& config) {
  const std::size_t elements = longest_flow(spec, config.size);
  if (config.size == 1 || elements <= limits::kFlowPacketsMax) return Status();
  const std::size_t payload_bytes = config.datagram_bytes - wire::kDataHeaderBytes;
  for (CodecOptions codec : {spec.options.codec, spread_codec_of(spec)}) {
    // A packet of fp32 has the fewest elements of all formats that `automatic` may choose. So a
    // tensor that fits with fp32 fits with any of them.
    if (codec.codec == Codec::automatic) codec = Codec::fp32;
    const std::size_t fitting =
        codec::format_of(codec, dtype_of(spec), purpose_of(spec)).elements_for(payload_bytes);
    if (elements <= fitting * std::size_t{limits::kFlowPacketsMax}) continue;
    return Status::error(
        StatusCode::kResourceExhausted,
        "%s: %zu elements from one rank to another are more than %u datagrams of %zu bytes hold "
        "(%zu elements); use several calls or larger datagrams",
        to_string(spec.kind), elements, limits::kFlowPacketsMax, config.datagram_bytes,
        fitting * std::size_t{limits::kFlowPacketsMax});
  }
  return Status();
}

// Plans a collective that takes its place and sends no data: a stand-in, or a call that is
// forfeited. The tag of a refused call has only the kind, since invalid options may have no
// encoding.
void plan_stand_in(const Request& request, const protocol::Endpoint& endpoint,
                   OperationPlan& plan) {
  plan.kind = request.spec.kind;
  plan.self = endpoint.config().self;
  plan.size = endpoint.config().size;
  plan.meter = nullptr;
  plan.payload = nullptr;
  plan.owner_weights.clear();
  const auto& forfeit = request.spec.forfeit;
  if (forfeit == nullptr || !protocol::is_refusal(forfeit->code())) {
    plan_pairs(request.spec, plan);
    plan_round(request.spec, request.submitted, plan);
  } else {
    plan.pair_sends.clear();
    plan.pair_receives.clear();
    plan_round({.kind = request.spec.kind}, request.submitted, plan);
  }
  plan.round.stands_in = true;
  plan.round.needs_every_rank = true;
  plan.round.confirm_use = false;
}

void plan_collective(const Request& request, const protocol::Endpoint& endpoint,
                     const PlanContext& context, OperationPlan& plan) {
  if (request.spec.stands_in || request.spec.forfeit != nullptr)
    return plan_stand_in(request, endpoint, plan);
  const OperationSpec& spec = request.spec;
  const bool by_one = goes_through_one_rank(spec, endpoint.config());
  const bool empty = is_empty(spec);
  if (!by_one && !empty) return plan_halves(spec, request.submitted, endpoint, context, plan);
  OperationSpec meeting = empty ? as_meeting(spec) : spec;
  if (by_one) meeting = as_sum(meeting, context.barrier);
  plan_halves(meeting, request.submitted, endpoint, context, plan);
  plan.round.tag = tag_of(spec);
  plan.round.name = to_string(spec.kind);
}

void plan_message(const Request& request, const protocol::Endpoint& endpoint, OperationPlan& plan) {
  const OperationSpec& spec = request.spec;
  const bool sends = spec.kind == OperationKind::send;
  plan_common(spec, endpoint.config(), plan);
  plan.step = message_step(endpoint, spec);
  plan.payload = nullptr;
  plan_spread(spec, plan);
  if (sends) {
    plan.spread.send[0] = {.data = bytes_of(spec.input.data), .elements = spec.input.count};
  } else {
    plan.spread.receive[0] = {.data = bytes_of(spec.output.data), .elements = spec.output.count};
  }
  plan_round(spec, request.submitted, plan);
  plan.round.point_peer = spec.peer;
  plan.round.point_send = sends;
  plan.round.message_tag = spec.options.tag;
  plan_spread_phase(spec, endpoint.config(), FlowKind::point, plan);
}

}  // namespace leeway::collective
