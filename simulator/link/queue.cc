#include "link/queue.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::sim {
namespace {

std::variant<Serializer, TraceLine> make_line(const QueueOptions& options) {
  if (options.deliveries_ns.empty()) return Serializer(options.bits_per_second);
  return TraceLine(options.deliveries_ns, options.delivery_bytes);
}

// A recorded line's is the mean over the record.
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

void WaitingPackets::push(std::int64_t until_ns, std::uint32_t bytes) {
  if (packets() == ring_.size()) grow();
  ring_[end_++ & mask_] = {until_ns, bytes};
  bytes_ += bytes;
}

void WaitingPackets::grow() {
  std::vector<Waiting> larger(ring_.size() * 2);
  for (std::size_t at = first_; at != end_; ++at) {
    larger[at & (larger.size() - 1)] = ring_[at & mask_];
  }
  ring_ = std::move(larger);
  mask_ = ring_.size() - 1;
}

Result<Queue> Queue::make(const QueueOptions& options, std::uint64_t seed, std::uint64_t link) {
  if (Status status = check_queue(options); !status.ok()) return status;
  return Queue(options, RandomStream(seed, link, Purpose::queue));
}

Queue::Queue(const QueueOptions& options, const RandomStream& random)
    : options_(options), line_(make_line(options)), codel_(make_codel(options)), random_(random) {
  options_.deliveries_ns = {};  // the line has them
}

Passage Queue::enqueue(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable) {
  LEEWAY_ASSERT(bytes > 0 && bytes <= Serializer::kBytesMax);
  waiting_.advance(now_ns);
  ++counters_.offered_packets;
  counters_.offered_bytes += bytes;
  Passage passage;
  if (!fits(bytes, options_.max_bytes)) {
    passage = trim(now_ns, bytes);
  } else if (const bool hit = hit_by_red(); hit && !ecn_capable) {
    passage.fate = QueueFate::early;
  } else {
    passage = admit(now_ns, bytes, ecn_capable, hit);
  }
  count(passage);
  return passage;
}

std::uint64_t Queue::waiting_bytes(std::int64_t now_ns) {
  waiting_.advance(now_ns);
  return waiting_.bytes();
}

std::size_t Queue::waiting_packets(std::int64_t now_ns) {
  waiting_.advance(now_ns);
  return waiting_.packets();
}

std::int64_t Queue::start_of(std::int64_t now_ns) {
  return std::visit([&](auto& line) { return line.start(now_ns); }, line_);
}

bool Queue::fits(std::uint32_t bytes, std::uint64_t limit) const {
  return waiting_.packets() < options_.max_packets && waiting_.bytes() <= limit &&
         bytes <= limit - waiting_.bytes();
}

// The ramp in integers: u < probability * (found - min) / (max - min).
bool Queue::hit_by_red() {
  const std::uint64_t found = waiting_.bytes();
  if (options_.red_max_bytes == 0 || found < options_.red_min_bytes) return false;
  if (found >= options_.red_max_bytes) return true;
  const std::uint64_t full = Probability::of(options_.red_probability).f63();
  const Wide part = Wide{full} * (found - options_.red_min_bytes) /
                    (options_.red_max_bytes - options_.red_min_bytes);
  return random_.bernoulli(Probability::of_f63(static_cast<std::uint64_t>(part)));
}

Passage Queue::trim(std::int64_t now_ns, std::uint32_t bytes) {
  const std::uint32_t rest = std::min(bytes, options_.trim_bytes);
  const std::uint64_t limit = options_.max_bytes + options_.trim_room_bytes;
  if (rest == 0 || !fits(rest, limit)) return {QueueFate::full, 0, 0};
  return send(now_ns, rest, rest < bytes ? QueueFate::trimmed : QueueFate::sent);
}

// CoDel judges a packet when the line takes it, which is known already.
Passage Queue::admit(std::int64_t now_ns, std::uint32_t bytes, bool ecn_capable, bool mark) {
  if (codel_) {
    const std::int64_t start = start_of(now_ns);
    const bool hit = codel_->hit(start, start - now_ns, ecn_capable);
    if (hit && !ecn_capable) {
      waiting_.push(start, bytes);
      return {QueueFate::late, start, 0};
    }
    mark = mark || hit;
  }
  return send(now_ns, bytes, mark ? QueueFate::marked : QueueFate::sent);
}

Passage Queue::send(std::int64_t now_ns, std::uint32_t bytes, QueueFate fate) {
  const std::int64_t departure =
      std::visit([&](auto& line) { return line.send(now_ns, bytes); }, line_);
  waiting_.push(departure, bytes);
  return {fate, departure, bytes};
}

void Queue::count(const Passage& passage) {
  counters_.sent_packets += !passage.dropped();
  counters_.sent_bytes += passage.bytes;
  counters_.marked_packets += passage.fate == QueueFate::marked;
  counters_.trimmed_packets += passage.fate == QueueFate::trimmed;
  counters_.full_packets += passage.fate == QueueFate::full;
  counters_.early_packets += passage.fate == QueueFate::early;
  counters_.late_packets += passage.fate == QueueFate::late;
}

}  // namespace leeway::sim
