#include "link/queue.h"

#include <algorithm>
#include <utility>

#include "engine/probability.h"

namespace leeway::sim {
namespace {

bool is_special(const QueueOptions& options) {
  return !options.deliveries_ns.empty() || options.trim_bytes > 0 || options.red_max_bytes > 0 ||
         options.codel_target_ns > 0;
}

std::optional<TraceLine> make_recorded(const QueueOptions& options) {
  if (options.deliveries_ns.empty()) return {};
  return TraceLine(options.deliveries_ns, options.delivery_bytes);
}

// Returns how long the line takes for a full packet; the mean for a recorded line.
std::int64_t packet_time(const QueueOptions& options) {
  if (options.deliveries_ns.empty()) {
    return Serializer(options.bits_per_second).send(0, options.codel_packet_bytes);
  }
  const auto bytes = static_cast<double>(options.delivery_bytes) *
                     static_cast<double>(options.deliveries_ns.size());
  return static_cast<std::int64_t>(static_cast<double>(options.deliveries_ns.back()) *
                                   options.codel_packet_bytes / bytes);
}

std::optional<Codel> make_codel(const QueueOptions& options) {
  if (options.codel_target_ns == 0) return {};
  return Codel(options.codel_target_ns, options.codel_interval_ns, packet_time(options));
}

}  // namespace

void WaitingPackets::grow() {
  const std::uint32_t places = 2 * (mask_ + 1);
  auto larger = std::make_unique<Waiting[]>(places);
  for (std::uint32_t at = first_; at != end_; ++at) {
    larger[at & (places - 1)] = ring_[at & mask_];
  }
  ring_ = std::move(larger);
  mask_ = places - 1;
}

Result<Queue> Queue::make(const QueueOptions& options, std::uint64_t seed, std::uint64_t link) {
  if (Status status = check_queue(options); !status.ok()) return status;
  return Queue(options, RandomStream(seed, link, Purpose::queue));
}

Queue::Special::Special(const QueueOptions& chosen, const RandomStream& stream)
    : options(chosen), recorded(make_recorded(chosen)), codel(make_codel(chosen)), random(stream) {
  options.deliveries_ns = {};  // the line has its own copy
}

Queue::Queue(const QueueOptions& options, const RandomStream& random)
    : line_(options.deliveries_ns.empty() ? options.bits_per_second : 1),
      max_bytes_(options.max_bytes),
      max_packets_(options.max_packets),
      special_(is_special(options) ? std::make_unique<Special>(options, random) : nullptr) {}

Passage Queue::judge(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable) {
  if (!fits(bytes, max_bytes_)) return trim(now_ns, bytes);
  const bool hit = hit_by_red();
  if (hit && !ecn_capable) return {QueueFate::early, 0, 0};
  return admit(now_ns, bytes, ecn_capable, hit);
}

std::int64_t Queue::start_of(std::int64_t now_ns) {
  return special_->recorded ? special_->recorded->start(now_ns) : line_.start(now_ns);
}

// Returns true if RED hits the packet. On RED's ramp it does if u < probability * (found - min) /
// (max - min), for u uniform in [0, 1) and `found` bytes in the queue, computed in integers.
bool Queue::hit_by_red() {
  const QueueOptions& options = special_->options;
  const std::uint64_t found = waiting_.bytes();
  if (options.red_max_bytes == 0 || found < options.red_min_bytes) return false;
  if (found >= options.red_max_bytes) return true;
  const std::uint64_t full = Probability::of(options.red_probability).f63();
  const Wide part = Wide{full} * (found - options.red_min_bytes) /
                    (options.red_max_bytes - options.red_min_bytes);
  return special_->random.bernoulli(Probability::of_f63(static_cast<std::uint64_t>(part)));
}

Passage Queue::trim(std::int64_t now_ns, std::uint32_t bytes) {
  const std::uint32_t rest = std::min(bytes, special_->options.trim_bytes);
  const std::uint64_t limit = max_bytes_ + special_->options.trim_room_bytes;
  if (rest == 0 || !fits(rest, limit)) return {QueueFate::full, 0, 0};
  return send(now_ns, rest, rest < bytes ? QueueFate::trimmed : QueueFate::sent);
}

// CoDel judges a packet when the line begins to send it. That time is known when the packet comes,
// so the packet is judged here.
Passage Queue::admit(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable, bool mark) {
  if (std::optional<Codel>& codel = special_->codel) {
    const std::int64_t start = start_of(now_ns);
    const bool hit = codel->hit(start, start - now_ns, ecn_capable);
    if (hit && !ecn_capable) {
      waiting_.push(start, bytes);
      return {QueueFate::late, start, 0};
    }
    mark = mark || hit;
  }
  return send(now_ns, bytes, mark ? QueueFate::marked : QueueFate::sent);
}

Passage Queue::send(std::int64_t now_ns, std::uint32_t bytes, QueueFate fate) {
  std::optional<TraceLine>& recorded = special_->recorded;
  return sent(recorded ? recorded->send(now_ns, bytes) : line_.send(now_ns, bytes), bytes, fate);
}

}  // namespace leeway::sim
