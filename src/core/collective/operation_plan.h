// Plan of one operation, made from the caller's request when the operation begins.
//
// The operation owns its plan until its round is closed. Both halves and the protocol's round only
// read it, and keep the state that changes while the operation runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "codec/finite.h"
#include "collective/request.h"
#include "protocol/round_plan.h"
#include "schedule/packet_grid.h"
#include "schedule/shard_map.h"

namespace leeway::protocol {
class Endpoint;
struct EndpointConfig;
}  // namespace leeway::protocol

namespace leeway::collective {

class NoiseMeter;
class PayloadExchange;

// Reduce half: which rank sums which elements, and how.
struct ReductionPlan {
  schedule::ShardMap shards = schedule::ShardMap::single(0, 0);
  ReduceOp op = ReduceOp::sum;   // premul_sum is planned as sum, with a factor
  std::optional<Scalar> factor;  // factor of our contribution; nullopt means 1
  codec::Format format;
  Estimator estimator = Estimator::ratio;
  bool lossy = false;
  bool one_pass = false;  // best effort: packets lost of a flow that came in part are not repaired
  // True if a packet's contribution that holds an infinity or a NaN is treated as missing.
  bool finite_only = false;
  std::uint64_t rotation_key = 0;    // key of the order in which all senders walk our shard
  const std::byte* input = nullptr;  // the whole tensor
  std::byte* result = nullptr;       // our reduced shard; may be our part of `input`
  // Guess of the result of our shard, for Estimator::augmented. If empty, our own contribution is
  // the guess.
  std::span<const float> control;
  std::span<float> residual;  // error feedback, the whole tensor; empty if none
  // True if the input is copied, so that the caller may overwrite it soon.
  bool copy_input = false;
  bool fetch_empty = false;  // owners ask again for contributions of which no packet arrived

  // Returns the factor that turns a contribution of weight `weight` into values per unit of work.
  // In a sum each contribution is one unit.
  double per_unit(double weight) const { return op == ReduceOp::avg ? 1.0 / weight : 1.0; }
};

// Elements of one rank in the caller's memory.
struct Block {
  std::byte* data = nullptr;
  std::size_t elements = 0;
  std::size_t position = 0;  // in the tensor, for keyed draws; the same at sender and receivers
  std::size_t offset = 0;    // elements from the start of the tensor (for a gather, the root's)
};

// Spread half, and every operation that only moves data.
struct SpreadPlan {
  codec::Format format;
  bool same_block = false;  // every receiver gets one block: encode and checksum it once
  bool streaming = false;   // the block becomes available chunk by chunk (a reduction fills it)
  bool adopt = false;       // our own block becomes decode(encode(block)): all hold the same bits
  bool copy_input = false;  // small block: keep a copy, so that the caller's memory is soon free
  // True if a block without elements is sent as an empty packet, so that its receiver hears of it.
  bool tells_empty = false;
  // True if a payload source and sink encode and decode the elements (PayloadExchange). Block::data
  // is not used then.
  bool elsewhere = false;
  double meter_factor = 1.0;   // turns the block into values per unit of work
  std::vector<Block> send;     // by receiver; a block without elements is not sent
  std::vector<Block> receive;  // by sender

  // Returns true if the block that all receivers get is sent from the library's memory, encoded or
  // copied.
  bool sends_own_copy() const {
    return same_block && !elsewhere && (!format.identity() || copy_input);
  }
};

struct OperationPlan {
  OperationPlan() = default;
  OperationPlan(const OperationPlan&) = delete;  // round and reduction refer to its vectors
  OperationPlan& operator=(const OperationPlan&) = delete;

  OperationKind kind = OperationKind::barrier;
  Rank self = 0;  // 0 for a message; send[0] or receive[0] is its block
  int size = 1;
  DataType dtype = DataType::f32;
  std::size_t payload_bytes = 0;  // limit on the bytes of one encoded packet
  // True if some receiver's payloads need a checksum. `intact`: by receiver, 1 if its payloads need
  // none (protocol::EndpointConfig).
  bool sum_payloads = true;
  std::span<const std::uint8_t> intact;
  bool contents = true;  // OperationSpec::contents
  // `seed` and `step` key the random bits of codecs and estimators.
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  NoiseMeter* meter = nullptr;  // null if nothing is measured
  // Connection to the caller's payload source and sink. Null if the library encodes and decodes.
  PayloadExchange* payload = nullptr;
  std::vector<double> owner_weights;
  // Shards of a reduction with uneven blocks, by owner, and their positions for keyed draws.
  std::vector<schedule::Shard> uneven_shards;
  std::vector<std::size_t> uneven_positions;
  // In an uneven all_to_all, the elements that we send to and expect from each rank; else empty.
  std::vector<std::uint64_t> pair_sends;
  std::vector<std::uint64_t> pair_receives;
  ReductionPlan reduction;    // valid if round.phase(reduce).active
  SpreadPlan spread;          // valid if round.phase(spread).active, or for a message
  protocol::RoundPlan round;  // the protocol's part of the plan

  bool sums_to(Rank receiver) const {
    return sum_payloads && (receiver >= intact.size() || intact[receiver] == 0);
  }

  // Returns how `elements` are cut into packets of a format.
  schedule::PacketGrid grid_of(std::size_t elements, const codec::Format& format) const {
    return schedule::PacketGrid(
        elements, static_cast<std::uint32_t>(format.elements_for(payload_bytes)), size_of(dtype));
  }
  // Returns how the owner's shard is cut into packets in the reduce half.
  schedule::PacketGrid reduced_grid(Rank owner) const {
    return grid_of(reduction.shards[owner].count, reduction.format);
  }
  std::size_t reduced_packet_bytes() const {
    return reduction.format.encoded_bytes(reduction.format.elements_for(payload_bytes));
  }
  // Returns the keys of the random bits with which `source` encodes elements at that position.
  codec::Place place_of(Rank source, std::size_t position) const {
    return {seed, step, source, position};
  }
  // Returns false if noise cannot be measured on `values`: some are not finite, and the reduction
  // leaves such values out.
  bool is_measurable(ByteSpan values) const {
    return !reduction.finite_only || codec::all_finite(dtype, values);
  }
  // Returns the factor that turns a reduction's result into values per unit of work.
  double result_per_unit() const { return reduction.op == ReduceOp::avg ? 1.0 : 1.0 / size; }
};

// What a plan needs beside the request: the collective's number, and parts of the operation to
// which the plan refers.
struct PlanContext {
  std::uint32_t number;
  NoiseMeter& meter;
  const schedule::ChunkQueue& own_chunks;  // chunks of our block that may be sent
  std::byte* barrier;        // two bytes: the one that a barrier sends and the one that it receives
  PayloadExchange* payload;  // used if the request has a source and a sink
};

// Returns when a call's deadline passes. Returns the infinite future if `deadline` exceeds a
// quarter of no_deadline.
Instant overdue_at(Instant submitted, Duration deadline);
inline Instant deadline_of(const Request& request) {
  return overdue_at(request.submitted, request.spec.options.delivery.deadline);
}

// Returns kResourceExhausted if the operation, which must be valid, has a flow of more than
// limits::kFlowPacketsMax packets.
Status check_flow_lengths(const OperationSpec& spec, const protocol::EndpointConfig& config);

// Fills in `plan` for the collective of number `context.number`, and copies this rank's own block
// to its place in the output. The request must have been validated and submitted. Reuses the plan's
// memory.
void plan_collective(const Request& request, const protocol::Endpoint& endpoint,
                     const PlanContext& context, OperationPlan& plan);
// Plans both halves as `spec` has them. Unlike plan_collective(), it does not replace a barrier or
// a call without elements by a cheaper operation.
void plan_halves(const OperationSpec& spec, Instant submitted, const protocol::Endpoint& endpoint,
                 const PlanContext& context, OperationPlan& plan);
// Fills in `plan` for a message (send or recv).
void plan_message(const Request& request, const protocol::Endpoint& endpoint, OperationPlan& plan);

}  // namespace leeway::collective
