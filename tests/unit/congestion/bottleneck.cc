#include "unit/congestion/bottleneck.h"

#include <algorithm>

namespace leeway::congestion::testing {
namespace {

Duration of_seconds(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

Bottleneck::Bottleneck(const Line& line) : line_(line), random_(line.seed) {}

std::size_t Bottleneck::add(const FlowOptions& options) {
  const std::size_t number = flows_.size();
  Flow& flow = flows_.emplace_back();
  for (std::size_t lane = 0; lane < options.lanes; ++lane) {
    Lane& made = flow.lanes.emplace_back();
    made.uplink = lane > 0 ? std::make_unique<Uplink>(flow.lanes[0].uplink.get())
                           : std::make_unique<Uplink>(make_controller(
                                 {.control = options.control,
                                  .rate_bits_per_second = options.rate_bits_per_second}));
    made.uplink->wake_by([this, number, lane] { wake(number, lane, now_); });
    made.links.resize(options.links);
    for (std::size_t link = 0; link < options.links; ++link) made.uplink->make_link(link, 1 << 15);
    wake(number, lane, Instant{1'000'000'000} + of_seconds(options.start_seconds));
  }
  return number;
}

void Bottleneck::push(Event event) {
  event.number = pushed_++;
  events_.push(event);
}

void Bottleneck::run_until(double seconds) {
  const Instant end = Instant{1'000'000'000} + of_seconds(seconds);
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    switch (event.what) {
      case Event::wake: {
        Lane& lane = flows_[event.flow].lanes[event.lane];
        if (event.at != lane.wake_at) break;  // it woke earlier
        lane.wake_at = Instant::infinite_future();
        lane.uplink->on_wake(now_);
        pump(event.flow, event.lane);
        break;
      }
      case Event::arrival:
        on_arrival(event);
        break;
      case Event::report:
        if (flows_[event.flow].muted) break;
        flows_[event.flow].lanes[event.lane].uplink->on_report(now_, event.link, event.arrivals);
        pump(event.flow, event.lane);
        break;
      case Event::call: {
        const auto what = std::move(calls_[event.flow]);
        free_calls_.push_back(event.flow);
        what(now_);
        break;
      }
    }
  }
  now_ = end;
}

void Bottleneck::pump(std::size_t number, std::size_t lane_number) {
  const Flow& flow = flows_[number];
  Lane& lane = flows_[number].lanes[lane_number];
  Uplink& uplink = *lane.uplink;
  if (now_ < flow.paused_until) {
    uplink.note_idle();
    return wake(number, lane_number, flow.paused_until);
  }
  while (uplink.open(now_)) {
    const std::size_t to = lane.turn++ % lane.links.size();
    Link& link = lane.links[to];
    const auto packets =
        static_cast<std::uint32_t>(std::max<std::size_t>(uplink.quantum_bytes() / kPacket, 1));
    for (std::uint32_t i = 0; i < packets; ++i) {
      const bool asks = uplink.asks(now_, to);
      if (asks) uplink.on_asked(now_, to);
      transmit({.what = Event::arrival,
                .flow = number,
                .lane = lane_number,
                .link = to,
                .sequence = ++link.sequence,
                .asks = asks});
    }
    uplink.on_sent(now_, to, {link.sequence, packets, kPacket, packets * kPacket});
    if (on_train) on_train(number, now_, packets * kPacket);
  }
  uplink.note_held_back();
  wake(number, lane_number, std::max(uplink.next_wake(), now_));
}

void Bottleneck::wake(std::size_t flow, std::size_t lane, Instant at) {
  if (at >= flows_[flow].lanes[lane].wake_at) return;
  flows_[flow].lanes[lane].wake_at = at;
  push({.at = at, .what = Event::wake, .flow = flow, .lane = lane});
}

void Bottleneck::transmit(const Event& packet) {
  Flow& flow = flows_[packet.flow];
  ++flow.counts.sent;
  const double ahead = std::max(0.0, to_seconds(line_free_at_ - now_)) * line_.bits_per_second / 8;
  const auto passed_at = pass(kPacket);
  if (!passed_at) {
    ++flow.counts.overflowed;
    return;
  }
  if (loses(std::max(line_.loss, flow.own_loss))) return;
  Event arrival = packet;
  arrival.at = *passed_at + of_seconds(line_.rtt_seconds / 2);
  arrival.marked = line_.mark_bdp > 0 && ahead > line_.mark_bdp * line_.bdp_bytes();
  push(arrival);
}

// Bursts follow Gilbert's model: packets begin and end a burst with fixed probabilities.
bool Bottleneck::loses(double share) {
  const double drawn = static_cast<double>(random_() >> 11) * 0x1p-53;
  if (line_.burst <= 1) return drawn < share;
  in_burst_ = drawn < (in_burst_ ? 1 - 1 / line_.burst : share / (1 - share) / line_.burst);
  return in_burst_;
}

std::optional<Instant> Bottleneck::pass(std::size_t bytes) {
  line_free_at_ = std::max(line_free_at_, now_);
  const double waiting = to_seconds(line_free_at_ - now_);
  if (waiting * line_.bits_per_second / 8 + static_cast<double>(bytes) >
      std::max(line_.queue_bdp * line_.bdp_bytes(), 2.0 * kPacket)) {
    return std::nullopt;
  }
  waits_.push_back(waiting);
  line_free_at_ += of_seconds(static_cast<double>(bytes) * 8 / line_.bits_per_second);
  return line_free_at_;
}

void Bottleneck::at(Instant at, std::function<void(Instant)> what) {
  std::size_t place = calls_.size();
  if (free_calls_.empty()) {
    calls_.push_back(std::move(what));
  } else {
    place = free_calls_.back();
    free_calls_.pop_back();
    calls_[place] = std::move(what);
  }
  push({.at = at, .what = Event::call, .flow = place});
}

void Bottleneck::pause(std::size_t flow, double until_seconds) {
  flows_[flow].paused_until = Instant{1'000'000'000} + of_seconds(until_seconds);
  for (std::size_t lane = 0; lane < flows_[flow].lanes.size(); ++lane)
    wake(flow, lane, flows_[flow].paused_until);
}

void Bottleneck::on_arrival(const Event& event) {
  Lane& lane = flows_[event.flow].lanes[event.lane];
  Arrivals& arrivals = lane.links[event.link].arrivals;
  flows_[event.flow].counts.arrived_bytes += kPacket;
  lane.arrived_bytes += kPacket;
  ++arrivals.received;
  arrivals.received_bytes += kPacket;
  ++(event.marked ? arrivals.ce : arrivals.ect);
  arrivals.largest = event.sequence;
  // The peer's clock is an hour ahead.
  arrivals.arrived_us = static_cast<std::uint32_t>(now_.ns / 1000 + 3'600'000'000) & 0xFFFFFF;
  if (!event.asks) return;
  push({.at = now_ + of_seconds(line_.rtt_seconds / 2),
        .what = Event::report,
        .flow = event.flow,
        .lane = event.lane,
        .link = event.link,
        .arrivals = arrivals});
}

void Bottleneck::reset() {
  reset_at_ = now_;
  waits_.clear();
  for (Flow& flow : flows_) {
    flow.counts = {};
    for (Lane& lane : flow.lanes) lane.arrived_bytes = 0;
  }
}

double Bottleneck::share(std::size_t flow) const {
  const double elapsed = to_seconds(now_ - reset_at_);
  return static_cast<double>(flows_[flow].counts.arrived_bytes) * 8 / elapsed /
         line_.bits_per_second;
}

double Bottleneck::share(std::size_t flow, std::size_t lane) const {
  const double elapsed = to_seconds(now_ - reset_at_);
  return static_cast<double>(flows_[flow].lanes[lane].arrived_bytes) * 8 / elapsed /
         line_.bits_per_second;
}

double Bottleneck::overflow_share(std::size_t flow) const {
  const FlowCounts& counts = flows_[flow].counts;
  return counts.sent == 0
             ? 0
             : static_cast<double>(counts.overflowed) / static_cast<double>(counts.sent);
}

double Bottleneck::queueing(double p) const {
  std::vector<double> sorted = waits_;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty()
             ? 0
             : sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

}  // namespace leeway::congestion::testing
