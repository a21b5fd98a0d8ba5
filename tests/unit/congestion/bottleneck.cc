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
  Flow flow;
  flow.bundle = std::make_unique<UplinkBundle>(make_controller(
      {.control = options.control, .rate_bits_per_second = options.rate_bits_per_second}));
  flow.links.resize(options.links);
  for (std::size_t link = 0; link < options.links; ++link) flow.bundle->make_link(link, 1 << 15);
  flows_.push_back(std::move(flow));
  wake(flows_.size() - 1, Instant{1'000'000'000} + of_seconds(options.start_seconds));
  return flows_.size() - 1;
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
      case Event::wake:
        if (event.at != flows_[event.flow].wake_at) break;  // it woke earlier
        flows_[event.flow].wake_at = Instant::infinite_future();
        flows_[event.flow].bundle->on_wake(now_);
        pump(event.flow);
        break;
      case Event::arrival:
        on_arrival(event);
        break;
      case Event::report:
        if (flows_[event.flow].muted) break;
        flows_[event.flow].bundle->on_report(now_, event.link, event.arrivals);
        pump(event.flow);
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

void Bottleneck::pump(std::size_t number) {
  Flow& flow = flows_[number];
  UplinkBundle& bundle = *flow.bundle;
  if (now_ < flow.paused_until) {
    bundle.note_idle();
    return wake(number, flow.paused_until);
  }
  while (bundle.open(now_)) {
    const std::size_t to = flow.turn++ % flow.links.size();
    Link& link = flow.links[to];
    const auto packets =
        static_cast<std::uint32_t>(std::max<std::size_t>(bundle.quantum_bytes() / kPacket, 1));
    for (std::uint32_t i = 0; i < packets; ++i) {
      const bool asks = bundle.asks(now_, to);
      if (asks) bundle.on_asked(now_, to);
      transmit(number, to, ++link.sequence, asks);
    }
    bundle.on_sent(now_, to, {link.sequence, packets, kPacket, packets * kPacket});
    if (on_train) on_train(number, now_, packets * kPacket);
  }
  bundle.note_held_back();
  wake(number, std::max(bundle.next_wake(), now_));
}

void Bottleneck::wake(std::size_t flow, Instant at) {
  if (at >= flows_[flow].wake_at) return;
  flows_[flow].wake_at = at;
  push({.at = at, .what = Event::wake, .flow = flow});
}

void Bottleneck::transmit(std::size_t flow, std::size_t link, std::uint32_t sequence, bool asks) {
  FlowCounts& counts = flows_[flow].counts;
  ++counts.sent;
  const double ahead = std::max(0.0, static_cast<double>((line_free_at_ - now_).count()) / 1e9) *
                       line_.bits_per_second / 8;
  const auto passed_at = pass(kPacket);
  if (!passed_at) {
    ++counts.overflowed;
    return;
  }
  if (loses(std::max(line_.loss, flows_[flow].own_loss))) return;
  push({.at = *passed_at + of_seconds(line_.rtt_seconds / 2),
        .what = Event::arrival,
        .flow = flow,
        .link = link,
        .sequence = sequence,
        .asks = asks,
        .marked = line_.mark_bdp > 0 && ahead > line_.mark_bdp * line_.bdp_bytes()});
}

// Bursts are Gilbert's: a burst begins and ends with the same chance at each packet.
bool Bottleneck::loses(double share) {
  const double drawn = static_cast<double>(random_() >> 11) * 0x1p-53;
  if (line_.burst <= 1) return drawn < share;
  in_burst_ = drawn < (in_burst_ ? 1 - 1 / line_.burst : share / (1 - share) / line_.burst);
  return in_burst_;
}

std::optional<Instant> Bottleneck::pass(std::size_t bytes) {
  line_free_at_ = std::max(line_free_at_, now_);
  const double waiting = static_cast<double>((line_free_at_ - now_).count()) / 1e9;
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
  wake(flow, flows_[flow].paused_until);
}

void Bottleneck::on_arrival(const Event& event) {
  Flow& flow = flows_[event.flow];
  Arrivals& arrivals = flow.links[event.link].arrivals;
  flow.counts.arrived_bytes += kPacket;
  ++arrivals.received;
  arrivals.received_bytes += kPacket;
  ++(event.marked ? arrivals.ce : arrivals.ect);
  arrivals.largest = event.sequence;
  // The peer's clock is ahead by an hour.
  arrivals.arrived_us = static_cast<std::uint32_t>(now_.ns / 1000 + 3'600'000'000) & 0xFFFFFF;
  if (!event.asks) return;
  push({.at = now_ + of_seconds(line_.rtt_seconds / 2),
        .what = Event::report,
        .flow = event.flow,
        .link = event.link,
        .arrivals = arrivals});
}

void Bottleneck::reset() {
  reset_at_ = now_;
  waits_.clear();
  for (Flow& flow : flows_) flow.counts = {};
}

double Bottleneck::share(std::size_t flow) const {
  const double elapsed = static_cast<double>((now_ - reset_at_).count()) / 1e9;
  return static_cast<double>(flows_[flow].counts.arrived_bytes) * 8 / elapsed /
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
