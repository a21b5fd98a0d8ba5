#include "collective/operation.h"

#include <algorithm>

#include "base/contracts.h"
#include "collective/block_layout.h"
#include "collective/operation_plan.h"

namespace leeway::collective {
namespace {

using protocol::FlowKind;

std::byte* bytes_of(const void* data) {
  return static_cast<std::byte*>(const_cast<void*>(data));
}

}  // namespace

Operation::Operation(protocol::Endpoint& endpoint, estimate::LinkHistory& history,
                     AutomaticCodec& automatic, MemoryWatcher* watcher)
    : endpoint_(endpoint),
      history_(history),
      automatic_(automatic),
      reduction_(watcher),
      spread_(watcher) {}

bool Operation::begin(Instant now, Request& request) {
  LEEWAY_ASSERT(free());
  request_ = &request;
  submitted_ = reduce_settled_ = request.submitted;
  const OperationSpec& spec = request.spec;
  const auto step = static_cast<std::uint32_t>(request.sequence);
  const bool reduces = has_reduce_half(spec.kind);
  if (reduces) begin_reduction(step);
  if (has_spread_half(spec.kind)) begin_spread(step);
  const ReductionPlan* reduction = reduces ? &reduction_.plan() : nullptr;
  round_ = endpoint_.open_round(now, plan_round(spec, reduction, spread_, submitted_), *this);
  if (round_ == nullptr) return false;
  // Without units the input says nothing
  if (request.automatic_number && spec.options.weight > 0.0) {
    automatic_.observe({static_cast<const float*>(spec.input.data), spec.input.count});
  }
  endpoint_.start(now, *round_);
  return true;
}

void Operation::begin_reduction(std::uint32_t step) {
  const OperationSpec& spec = request_->spec;
  const auto& config = endpoint_.config();
  const int size = config.size;
  switch (spec.kind) {
    case OperationKind::reduce_scatter:
      shards_ = schedule::ShardMap::blocks(spec.output.count, size);
      break;
    case OperationKind::reduce:
      shards_ = schedule::ShardMap::single(spec.input.count, spec.peer);
      break;
    default:
      shards_ = schedule::ShardMap::even(spec.input.count, size);
      break;
  }
  const bool result_in_place =
      spec.kind == OperationKind::all_reduce || spec.kind == OperationKind::replica_reduce;
  ReductionPlan plan;
  plan.self = config.self;
  plan.size = size;
  plan.shards = shards_;
  plan.dtype = spec.input.dtype;
  plan.op = spec.options.op;
  plan.format = codec::format_of(spec.options.codec, spec.input.dtype, purpose_of(spec));
  plan.estimator = spec.options.estimator;
  plan.lossy = spec.options.delivery.kind != Delivery::Kind::exact;
  const auto& owner_weights = spec.options.owner_weights;
  plan.weight = owner_weights.empty() ? spec.options.weight : owner_weights[config.self];
  plan.datagram_payload_bytes = config.datagram_bytes - wire::kDataHeaderBytes;
  plan.sum_payloads = config.sum_payloads;
  plan.seed = config.seed;
  plan.rotation_key =
      endpoint_.rotation_key(endpoint_.next_collective(), FlowKind::reduce, config.self);
  plan.one_pass = spec.options.delivery.kind == Delivery::Kind::best_effort;
  plan.input = bytes_of(spec.input.data);
  plan.result = bytes_of(spec.output.data);
  plan.contents = spec.contents;
  if (result_in_place && spec.contents)
    plan.result += shards_[config.self].offset * size_of(spec.input.dtype);
  if (!spec.options.control_variate.empty()) {
    plan.control = spec.options.control_variate.subspan(shards_[config.self].offset,
                                                        shards_[config.self].count);
  }
  plan.residual = spec.options.residual;
  plan.meter = measures_noise() ? &meter_ : nullptr;
  plan.fetch_empty = fetches_empty(spec, plan);
  plan.copy_input = copies_input(spec, plan.fetch_empty);
  meter_.reset();
  reduction_.begin(plan, step, history_);
  reduced_.reset(reduction_.grid().chunks());
}

void Operation::begin_spread(std::uint32_t step) {
  const OperationSpec& spec = request_->spec;
  const auto& config = endpoint_.config();
  SpreadPlan plan;
  plan.self = config.self;
  plan.size = config.size;
  plan.dtype = dtype_of(spec);
  plan.format = codec::format_of(spread_codec_of(spec), plan.dtype, purpose_of(spec));
  plan.meter = measures_noise() ? &meter_ : nullptr;
  plan.meter_factor = spec.options.op == ReduceOp::avg ? 1.0 : 1.0 / config.size;
  plan.datagram_payload_bytes = config.datagram_bytes - wire::kDataHeaderBytes;
  plan.sum_payloads = config.sum_payloads;
  plan.seed = config.seed;
  plan.contents = spec.contents;
  plan.same_block = same_block(spec.kind);
  plan.streaming = has_reduce_half(spec.kind);
  plan.adopt = spec.kind == OperationKind::all_reduce || spec.kind == OperationKind::all_gather ||
               spec.kind == OperationKind::broadcast ||
               spec.kind == OperationKind::replica_broadcast;
  plan.copy_input = is_small(spec) && plan.same_block;
  plan.send.resize(config.size);
  plan.receive.resize(config.size);
  place_blocks(spec, barrier_bytes_, plan);
  spread_.begin(std::move(plan), step);
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

protocol::Payload Operation::payload(FlowKind kind, Rank to, std::uint32_t index,
                                     std::uint32_t ahead, MutableByteSpan scratch) {
  return kind == FlowKind::reduce ? reduction_.payload(to, index, ahead, scratch)
                                  : spread_.payload(to, index, scratch);
}

protocol::Acceptance Operation::accept(Rank from, const wire::DataHeader& header,
                                       ByteSpan payload) {
  if (header.kind != FlowKind::reduce) {
    if (!spread_.accept(from, header.index, payload)) return protocol::Acceptance::refused;
    if (request_->spec.ledger != nullptr) request_->spec.ledger->arrived[from].set(header.index);
    return protocol::Acceptance::accepted;
  }
  const std::uint32_t before = reduced_.size();
  const auto acceptance =
      reduction_.accept(from, header, payload, round_->phase(FlowKind::reduce).receive, reduced_);
  if (reduced_.size() != before) release_reduced();
  return acceptance;
}

void Operation::release_reduced() {
  if (!round_->plan.phase(FlowKind::spread).active) return;
  spread_.on_reduced(reduction_.grid(), reduced_);
  endpoint_.release_chunks(*round_, FlowKind::spread);
}

void Operation::on_settled(FlowKind kind, Instant now) {
  if (kind != FlowKind::reduce) return;
  reduce_settled_ = now;
  learn_from_links();
  reduction_.settle(round_->phase(kind).receive, reduced_);
  release_reduced();
}

void Operation::learn_from_links() {
  const auto& flows = round_->phase(FlowKind::reduce).receive;
  for (Rank peer = 0; peer < flows.size(); ++peer) {
    const protocol::ReceiveFlow& flow = flows[peer];
    if (flow.packets == 0) continue;
    history_.learn_delivery(peer,
                            static_cast<double>(flow.arrived_count - flow.repaired) / flow.packets);
    if (reduction_.plan().fetch_empty)
      history_.learn_heard(peer, flow.packets, flow.arrived_count > 0);
  }
}

void Operation::on_done(const Status& status, Instant now) {
  CollectiveReport& report = request_->report;
  report.sequence = request_->sequence;
  report.estimator = request_->spec.options.estimator;
  report.bytes_sent = round_->bytes_sent;
  report.times.gate =
      round_->gates_closed == 0 ? round_->gate_open_at - submitted_ : now - submitted_;
  report.times.reduce = reduce_settled_ - submitted_;
  report.times.spread = now - reduce_settled_;
  report.times.total = now - submitted_;
  for (const protocol::PhaseState& phase : round_->phases)
    report.deadline_cut |= phase.deadline_cut;
  report.codec = request_->spec.options.codec;
  if (has_reduce_half(request_->spec.kind)) reduction_.fill_report(report);
  fill_peer_reports();
  if (status.ok() && measures_noise()) report_noise();
  if (request_->automatic_number) {
    automatic_.observe(report.noise, reduction_.concentration(),
                       shards_[endpoint_.config().self].count);
  }
  if (status.ok() && round_->plan.phase(FlowKind::spread).active) {
    const auto& flows = round_->phase(FlowKind::spread).receive;
    report.elements_missing = spread_.missing_elements(flows);
    report.agreed = report.elements_missing == 0;
    const bool promised = round_->plan.phase(FlowKind::spread).delivery == Delivery::Kind::exact;
    if (!report.agreed && promised) spread_.clear_missing(flows);
  }
  request_->status = status;
  request_->done = true;
  request_ = nullptr;
}

// Where there is noise: something may be lost or is re-encoded.
bool Operation::measures_noise() const {
  const OperationSpec& spec = request_->spec;
  if (!has_reduce_half(spec.kind) || spec.input.dtype != DataType::f32) return false;
  if (!spec.contents) return false;
  if (spec.options.op != ReduceOp::sum && spec.options.op != ReduceOp::avg) return false;
  const auto encoded = [](const CodecOptions& options) {
    return options.codec > Codec::fp32 || options.rotate;
  };
  return spec.options.delivery.kind != Delivery::Kind::exact || encoded(spec.options.codec) ||
         encoded(spread_codec_of(spec));
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
  const double loss =
      packets == 0 ? 0.0 : 1.0 - static_cast<double>(arrived) / static_cast<double>(packets);
  const estimate::NoiseStatistics statistics =
      meter_.complete({.ranks = static_cast<std::uint32_t>(endpoint_.config().size),
                       .concentration = reduction_.concentration(),
                       .loss = loss,
                       .estimator = request_->spec.options.estimator,
                       .external_control = !request_->spec.options.control_variate.empty()});
  request_->report.noise = report_of(estimate::estimate_noise(statistics), loss);
}

void Operation::fill_peer_reports() {
  CollectiveReport& report = request_->report;
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t repaired = 0;
  for (Rank peer = 0; peer < endpoint_.config().size; ++peer) {
    if (peer == endpoint_.config().self) continue;
    PeerReport row{.rank = peer};
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round_->plan.phases[k].active) continue;
      const protocol::ReceiveFlow& in = round_->phases[k].receive[peer];
      row.expected += in.packets;
      row.arrived += in.arrived_count;
      row.repaired += in.repaired;
      row.duplicate += in.duplicate;
      row.late += in.late;
      row.sent += round_->phases[k].send[peer].sent;
      row.missed |= round_->phases[k].send[peer].missed;
    }
    expected += row.expected;
    arrived += row.arrived;
    repaired += row.repaired;
    report.peers.push_back(row);
  }
  if (expected == 0) return;
  report.loss = 1.0 - static_cast<double>(arrived) / static_cast<double>(expected);
  report.loss_first_pass =
      1.0 - static_cast<double>(arrived - repaired) / static_cast<double>(expected);
}

void Operation::on_closed() {
  round_ = nullptr;
  request_ = nullptr;
}

}  // namespace leeway::collective
