#include "unit/sim_tcp/tcp_path.h"

#include "base/contracts.h"

namespace leeway::sim {

namespace {

std::optional<Queue> make_line(const PathOptions& options) {
  if (options.bits_per_second == 0) return std::nullopt;
  QueueOptions queue;
  queue.bits_per_second = options.bits_per_second;
  queue.max_bytes = options.queue_bytes;
  queue.red_min_bytes = queue.red_max_bytes = options.mark_bytes;
  return Queue::make(queue, options.seed, 0).value();
}

DelayModel make_delay(const PathOptions& options) {
  DelayOptions delay;
  delay.delay_ns = options.one_way_ns;
  delay.jitter_ns = options.jitter_ns;
  return DelayModel::make(delay, options.seed, 0).value();
}

}  // namespace

TcpPath::TcpPath(const PathOptions& options)
    : line_(make_line(options)),
      loss_(LossModel::make(options.losses, options.seed, 0).value()),
      ack_loss_(LossModel::make(options.ack_losses, options.seed, 1).value()),
      delay_(make_delay(options)),
      one_way_ns_(options.one_way_ns) {}

TcpFlow& TcpPath::add(const TcpOptions& options) {
  const auto number = static_cast<std::uint32_t>(flows_.size());
  delivered_.push_back(0);
  flows_.push_back(std::make_unique<TcpFlow>(TcpFlow::Place{.flow = number, .from = 0, .to = 1},
                                             options, *this));
  return *flows_.back();
}

std::uint32_t TcpPath::keep(const Packet& packet) {
  if (free_.empty()) {
    packets_.push_back(packet);
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  packets_[place] = packet;
  return place;
}

void TcpPath::send_packet(Instant now, const Packet& packet) {
  if (filter && filter(now, packet)) return;
  Packet sent = packet;
  if (packet.traffic == Traffic::control) {
    if (ack_loss_.lost(now.ns, packet.bytes)) return;
    queue_.push({now.ns + one_way_ns_}, keep(sent), kArrival, 0);
    return;
  }
  std::int64_t at_ns = now.ns;
  if (line_) {
    const Passage outcome = line_->enqueue(now.ns, packet.bytes, packet.ecn_capable);
    if (outcome.dropped()) return;
    sent.marked = outcome.fate == QueueFate::marked;
    at_ns = outcome.departure_ns;
  }
  if (loss_.lost(at_ns, packet.bytes)) return;
  queue_.push({delay_.arrival(at_ns)}, keep(sent), kArrival, 0);
}

void TcpPath::wake_at(Instant at, std::uint32_t flow, TcpEnd end) {
  queue_.push(at, flow, kWake, static_cast<std::uint64_t>(end));
}

void TcpPath::on_delivered(Instant, std::uint32_t flow, std::uint64_t bytes) {
  delivered_[flow] += bytes;
}

void TcpPath::at(std::int64_t ns, std::function<void(Instant)> what) {
  calls_.push_back(std::move(what));
  queue_.push({ns}, static_cast<std::uint32_t>(calls_.size() - 1), kCall, 0);
}

void TcpPath::dispatch(const Event& event) {
  const Instant now{event.time_ns};
  if (event.kind == kArrival) {
    const Packet packet = packets_[event.target];
    free_.push_back(event.target);
    flows_[TcpFlow::flow_of(packet)]->on_packet(now, packet);
  } else if (event.kind == kWake) {
    flows_[event.target]->on_wake(now, static_cast<TcpEnd>(event.argument));
  } else {
    calls_[event.target](now);
  }
}

void TcpPath::run_until(std::int64_t ns) {
  bool over = false;
  at(ns, [&](Instant) { over = true; });
  for (Event event; !over && queue_.pop(event);) dispatch(event);
}

bool TcpPath::run_until_delivered(std::uint32_t flow, std::uint64_t bytes, std::int64_t limit_ns) {
  for (Event event; delivered_[flow] < bytes && queue_.now().ns < limit_ns && queue_.pop(event);) {
    dispatch(event);
  }
  return delivered_[flow] >= bytes;
}

}  // namespace leeway::sim
