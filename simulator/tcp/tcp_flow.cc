#include "tcp/tcp_flow.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::sim {

namespace {

// Returns the length of the SACK option, with head and blocks.
std::uint32_t sack_bytes(const TcpAck& ack) {
  std::uint32_t blocks = ack.duplicate ? 1 : 0;
  for (const SackBlock& block : ack.sacked) blocks += block.begin < block.end ? 1 : 0;
  return blocks > 0 ? 4 + 8 * std::min(blocks, 3u) : 0;
}

}  // namespace

TcpFlow::TcpFlow(const Place& place, const TcpOptions& options, TcpHost& host)
    : place_(place),
      options_(options),
      host_(host),
      sender_(options),
      receiver_(options),
      records_(kRecordsMin) {
  LEEWAY_ASSERT(place.from != place.to && place.flow < 1u << 24);
}

void TcpFlow::send(Instant now, std::uint64_t bytes) {
  sender_.write(bytes);
  pump(now);
}

void TcpFlow::on_packet(Instant now, const Packet& packet) {
  if (packet.corrupt || packet.trimmed) return;
  if (packet.from == place_.from) {
    on_segment(now, packet);
  } else {
    on_ack(now, packet.word & kNumberMask);
  }
}

void TcpFlow::on_wake(Instant now, TcpEnd end) {
  if (end == TcpEnd::receiver) {
    receiver_timer_.on_event(now);
    acknowledge_if_due(now);
    return;
  }
  sender_timer_.on_event(now);
  sender_.on_timer(now);
  pump(now);
}

void TcpFlow::pump(Instant now) {
  Instant free = host_.line_free_at(now, place_.from);
  while (free <= now) {
    const auto segment = sender_.poll(now);
    if (!segment) break;
    transmit(now, *segment);
    free = host_.line_free_at(now, place_.from);
  }
  Instant due = std::max(sender_.next_wake(), now);
  if (free > now) {
    sender_.hold();
    due = std::min(due, free);
  }
  if (sender_timer_.set(due)) host_.wake_at(due, place_.flow, TcpEnd::sender);
}

void TcpFlow::transmit(Instant now, const TcpSegment& segment) {
  LEEWAY_ASSERT(segment.number <= kNumberMask);
  Packet packet;
  packet.from = place_.from;
  packet.to = place_.to;
  packet.bytes = segment.bytes + options_.header_bytes;
  packet.word =
      word(segment.number | (segment.repeated ? kRepeated : 0) | (segment.reduced ? kReduced : 0));
  packet.traffic = place_.data;
  packet.ecn_capable = options_.ecn && !segment.repeated;
  counters_.bytes_sent += packet.bytes - kIpHeaderBytes;
  host_.send_packet(now, packet);
}

void TcpFlow::on_segment(Instant now, const Packet& packet) {
  TcpReceiver::Arrival arrival;
  arrival.number = packet.word & kNumberMask;
  arrival.bytes = packet.bytes - options_.header_bytes;
  arrival.marked = packet.marked;
  arrival.reduced = (packet.word & kReduced) != 0;
  const TcpReceiver::Taken taken = receiver_.on_segment(now, arrival);
  if (taken.news && (packet.word & kRepeated) != 0) ++counters_.repaired;
  acknowledge_if_due(now);
  if (taken.bytes == 0) return;
  counters_.bytes_delivered += taken.bytes;
  host_.on_delivered(now, place_.flow, taken.bytes);
}

void TcpFlow::acknowledge_if_due(Instant now) {
  if (receiver_.ack_due(now)) {
    make_room_for_records();
    const std::uint64_t number = acks_++;
    Record& record = records_[number & (records_.size() - 1)];
    record = {number, receiver_.take_ack()};
    Packet packet;
    packet.from = place_.to;
    packet.to = place_.from;
    packet.bytes = options_.header_bytes + sack_bytes(record.ack);
    packet.word = word(number & kNumberMask);
    packet.traffic = place_.acks;
    ++counters_.acks;
    host_.send_packet(now, packet);
  }
  const Instant due = receiver_.next_wake();
  if (receiver_timer_.set(due)) host_.wake_at(due, place_.flow, TcpEnd::receiver);
}

// Makes room for twice as many records as there are segments in flight, because each segment causes
// one acknowledgement and so one record.
void TcpFlow::make_room_for_records() {
  const std::size_t wanted = 2 * std::size_t{sender_.outstanding()};
  if (wanted <= records_.size()) return;
  std::vector<Record> more(std::bit_ceil(wanted));
  for (Record& record : records_) {
    if (record.number != UINT64_MAX) more[record.number & (more.size() - 1)] = record;
  }
  records_ = std::move(more);
}

void TcpFlow::on_ack(Instant now, std::uint64_t number) {
  const Record& record = records_[number & (records_.size() - 1)];
  if (record.number != number) return;
  sender_.on_ack(now, record.ack);
  pump(now);
}

}  // namespace leeway::sim
