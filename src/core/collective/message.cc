#include "collective/message.h"

#include <utility>

namespace leeway::collective {
namespace {

constexpr Rank kOther = 0;  // number of the other end, in the spread's group of one

}  // namespace

using protocol::FlowKind;

void Message::begin(Instant now, Request& request) {
  request_ = &request;
  length_ = request.spec.input.count;
  plan_message(request, endpoint_, plan_);
  spread_.begin(plan_);
  round_ = endpoint_.open_round(now, plan_.round, *this);
  request.message_number = round_->number;
  endpoint_.start(now, *round_);
}

schedule::PacketGrid Message::outgoing(FlowKind, Rank) const {
  return plan_.round.point_send ? spread_.outgoing(kOther) : schedule::PacketGrid();
}

schedule::PacketGrid Message::incoming(FlowKind, Rank) const {
  return plan_.round.point_send ? schedule::PacketGrid() : spread_.incoming(kOther);
}

protocol::Payload Message::payload(FlowKind, Rank, PacketIndex index, PacketIndex,
                                   MutableByteSpan scratch) {
  return spread_.payload(kOther, index, scratch);
}

protocol::Acceptance Message::accept(Rank, const wire::DataHeader& header, ByteSpan payload) {
  return spread_.accept(kOther, header.index, payload) ? protocol::Acceptance::accepted
                                                       : protocol::Acceptance::refused;
}

void Message::on_length(std::uint64_t elements) {
  plan_.spread.receive[kOther].elements = elements;
  length_ = elements;
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
  const bool sends = spec.kind == OperationKind::send;
  report.messages.push_back({.source = sends ? endpoint_.config().self : spec.peer,
                             .tag = spec.options.tag,
                             .count = length_});
  std::exchange(request_, nullptr)->finish(status, now);
}

void Message::on_closed() {
  round_ = nullptr;
  free_.push_back(this);
}

}  // namespace leeway::collective
