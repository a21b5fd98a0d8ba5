#include "collective/message.h"

#include "base/philox.h"
#include "collective/operation_plan.h"

namespace leeway::collective {
namespace {

using protocol::FlowKind;

constexpr Rank kOther = 0;  // in the spread's group of one

// Stream tag of the keyed hash (base/philox.h).
constexpr std::uint32_t kMessageStream = 0x70000000;

// Keys a codec's random bits by what both sides know: who sends the message to whom, and its
// number. (Their numbers of operations differ.)
std::uint32_t step_of(const protocol::Endpoint& endpoint, const OperationSpec& spec) {
  const bool sends = spec.kind == OperationKind::send;
  const Rank self = endpoint.config().self;
  const std::uint32_t number = endpoint.next_message(spec.peer, sends);
  return static_cast<std::uint32_t>(keyed_hash(endpoint.config().seed, number, kMessageStream,
                                               sends ? self : spec.peer, sends ? spec.peer : self));
}

}  // namespace

void Message::begin(Instant now, Request& request) {
  request_ = &request;
  const OperationSpec& spec = request.spec;
  const protocol::EndpointConfig& config = endpoint_.config();
  const bool sends = spec.kind == OperationKind::send;
  SpreadPlan plan;
  plan.self = kOther;
  plan.size = 1;
  plan.dtype = dtype_of(spec);
  plan.format = codec::format_of(spread_codec_of(spec), plan.dtype, purpose_of(spec));
  plan.datagram_payload_bytes = config.datagram_bytes - wire::kDataHeaderBytes;
  plan.sum_payloads = config.sum_payloads;
  plan.seed = config.seed;
  plan.contents = spec.contents;
  plan.same_block = true;
  plan.copy_input = is_small(spec);
  plan.send.resize(1);
  plan.receive.resize(1);
  if (sends) {
    plan.send[kOther] = {.data = static_cast<std::byte*>(const_cast<void*>(spec.input.data)),
                         .elements = spec.input.count};
  } else {
    plan.receive[kOther] = {.data = static_cast<std::byte*>(spec.output.data),
                            .elements = spec.output.count};
  }
  spread_.begin(std::move(plan), step_of(endpoint_, spec));
  round_ = endpoint_.open_round(now, plan_round(spec, nullptr, spread_, request.submitted), *this);
  endpoint_.start(now, *round_);
}

schedule::PacketGrid Message::outgoing(FlowKind, Rank) const {
  return spread_.outgoing(kOther);
}

schedule::PacketGrid Message::incoming(FlowKind, Rank) const {
  return spread_.incoming(kOther);
}

protocol::Payload Message::payload(FlowKind, Rank, std::uint32_t index, std::uint32_t,
                                   MutableByteSpan scratch) {
  return spread_.payload(kOther, index, scratch);
}

protocol::Acceptance Message::accept(Rank, const wire::DataHeader& header, ByteSpan payload) {
  return spread_.accept(kOther, header.index, payload) ? protocol::Acceptance::accepted
                                                       : protocol::Acceptance::refused;
}

void Message::on_done(const Status& status, Instant now) {
  const OperationSpec& spec = request_->spec;
  const protocol::ReceiveFlow& in = round_->receive(FlowKind::point, spec.peer);
  const protocol::SendFlow& out = round_->send(FlowKind::point, spec.peer);
  CollectiveReport& report = request_->report;
  report.sequence = request_->sequence;
  report.estimator = spec.options.estimator;
  report.codec = spec.options.codec;
  report.bytes_sent = round_->bytes_sent;
  const Instant submitted = request_->submitted;
  report.times.gate =
      round_->gates_closed == 0 ? round_->gate_open_at - submitted : now - submitted;
  report.times.spread = report.times.total = now - submitted;
  report.peers.push_back({.rank = spec.peer,
                          .expected = in.packets,
                          .arrived = in.arrived_count,
                          .repaired = in.repaired,
                          .duplicate = in.duplicate,
                          .late = in.late,
                          .sent = out.sent});
  if (in.packets > 0) {
    report.loss = static_cast<double>(in.missing()) / in.packets;
    report.loss_first_pass = report.loss + static_cast<double>(in.repaired) / in.packets;
  }
  request_->status = status;
  request_->done = true;
  request_ = nullptr;
}

void Message::on_closed() {
  round_ = nullptr;
  free_.push_back(this);
}

}  // namespace leeway::collective
