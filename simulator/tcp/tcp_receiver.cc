#include "tcp/tcp_receiver.h"

#include <algorithm>

namespace leeway::sim {

namespace {

constexpr std::uint64_t kNothing = UINT64_MAX;

// Returns the first block that ends beyond `number`.
auto block_behind(const std::vector<SackBlock>& blocks, std::uint64_t number) {
  return std::partition_point(blocks.begin(), blocks.end(),
                              [&](const SackBlock& block) { return block.end <= number; });
}

}  // namespace

TcpReceiver::TcpReceiver(const TcpOptions& options)
    : options_(options), quick_left_(options.quick_acks) {
  recent_.fill(kNothing);
}

TcpReceiver::Taken TcpReceiver::on_segment(Instant now, const Arrival& arrival) {
  if (arrival.reduced) echo_ = false;
  if (arrival.marked) echo_ = options_.ecn;
  const auto behind = block_behind(beyond_, arrival.number);
  const bool known = behind != beyond_.end() && behind->begin <= arrival.number;
  if (arrival.number < next_ || known) {
    duplicate_ = true;
    schedule_ack(now, true);
    return {};
  }
  bytes_.make_room(next_, std::max(arrival.number + 1, beyond_.empty() ? 0 : beyond_.back().end));
  bytes_[arrival.number] = arrival.bytes;
  ++waiting_;
  if (arrival.number > next_) {
    insert(arrival.number);
    remember(arrival.number);
    schedule_ack(now, true);
    return {0, true};
  }
  const bool hole = !beyond_.empty();
  const std::uint64_t bytes = take_in_order();
  schedule_ack(now, hole);
  return {bytes, true};
}

std::uint64_t TcpReceiver::take_in_order() {
  std::uint64_t end = next_ + 1;
  if (!beyond_.empty() && beyond_.front().begin == end) {
    end = beyond_.front().end;
    beyond_.erase(beyond_.begin());
  }
  std::uint64_t bytes = 0;
  for (; next_ < end; ++next_) bytes += bytes_[next_];
  return bytes;
}

void TcpReceiver::insert(std::uint64_t number) {
  const auto at = beyond_.begin() + (block_behind(beyond_, number) - beyond_.begin());
  const bool joins_before = at != beyond_.begin() && (at - 1)->end == number;
  const bool joins_after = at != beyond_.end() && at->begin == number + 1;
  if (joins_before && joins_after) {
    (at - 1)->end = at->end;
    beyond_.erase(at);
  } else if (joins_before) {
    ++(at - 1)->end;
  } else if (joins_after) {
    --at->begin;
  } else {
    beyond_.insert(at, {number, number + 1});
  }
}

// Puts segment `number`, which stands for its block, first in recent_. Other segments of the same
// block lose their places.
void TcpReceiver::remember(std::uint64_t number) {
  const SackBlock block = block_of(number);
  std::array<std::uint64_t, 3> kept;
  kept.fill(kNothing);
  kept[0] = number;
  std::size_t count = 1;
  for (const std::uint64_t old : recent_) {
    const bool same = block.begin <= old && old < block.end;
    if (old != kNothing && old >= next_ && !same && count < kept.size()) kept[count++] = old;
  }
  recent_ = kept;
}

SackBlock TcpReceiver::block_of(std::uint64_t number) const {
  return *block_behind(beyond_, number);
}

void TcpReceiver::schedule_ack(Instant now, bool at_once) {
  const bool quick = quick_left_ > 0;
  if (quick) --quick_left_;
  if (at_once || quick || waiting_ >= 2) {
    ack_at_ns_ = now.ns;
  } else {
    ack_at_ns_ = std::min(ack_at_ns_, now.ns + options_.delayed_ack_ns);
  }
}

TcpAck TcpReceiver::take_ack() {
  TcpAck ack{.next = next_, .duplicate = duplicate_, .congestion = echo_};
  std::size_t count = 0;
  for (const std::uint64_t number : recent_) {
    if (number != kNothing && number >= next_) ack.sacked[count++] = block_of(number);
  }
  waiting_ = 0;
  duplicate_ = false;
  ack_at_ns_ = kNeverNs;
  return ack;
}

}  // namespace leeway::sim
