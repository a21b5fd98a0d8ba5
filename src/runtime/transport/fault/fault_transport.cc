#include "transport/fault/fault_transport.h"

#include <algorithm>

#include "wire/packet.h"

namespace leeway::transport {
namespace {

using impairment::Fate;
using impairment::PacketAddress;
using impairment::read_address;

// One call of receive() takes at most this many datagrams at a time from the inner transport.
constexpr std::size_t kArrivalsMax = 256;

// receive() takes at most this many batches in which all datagrams are lost, and then returns.
constexpr int kLostBatchesMax = 4;

// Returns the bytes that Leeway's checksums cover. Injected damage hits only these, because no
// receiver would notice damage elsewhere.
MutableByteSpan summed_part(MutableByteSpan bytes, const PacketAddress& address) {
  return address.payload_summed ? bytes : bytes.first(wire::kDataHeaderBytes);
}

void flip_bit(MutableByteSpan bytes, std::uint64_t bit) {
  const std::uint64_t at = bit % (bytes.size() * 8);
  bytes[at / 8] ^= static_cast<std::byte>(1u << (at % 8));
}

}  // namespace

FaultTransport::FaultTransport(std::unique_ptr<DatagramTransport> inner, Rank self,
                               impairment::FaultPlan plan, ClockFunction clock, std::size_t slots)
    : inner_(std::move(inner)),
      self_(self),
      plan_(std::move(plan)),
      clock_(std::move(clock)),
      name_(std::string(inner_->name()) + "+faults"),
      arrivals_(kArrivalsMax),
      pool_(slots, inner_->limits().datagram_bytes_max),
      delayed_(slots),
      ready_(slots) {
  overtaken_.reserve(slots);
  lent_.reserve(slots);
}

std::size_t FaultTransport::receive(std::span<Received> out) {
  reclaim_lent();
  const Instant now = clock_();
  Output output{out};
  release_overdue(now);
  release_delayed(now, output);
  hand_out_ready(output, 0);
  // Bytes that the inner transport lent stay valid only until its next receive(). So the loop ends
  // as soon as a batch has handed out a datagram.
  for (int batch = 0; batch < kLostBatchesMax && output.room() > 0 && take_in(now, output) > 0;
       ++batch) {
    if (output.filled > 0) break;
  }
  return output.filled;
}

void FaultTransport::wait(Duration timeout) {
  if (!ready_.empty()) return;
  if (!delayed_.empty() || !overtaken_.empty()) {
    timeout = std::min(timeout, std::max(next_release() - clock_(), Duration{0}));
  }
  inner_->wait(timeout);
}

void FaultTransport::reclaim_lent() {
  for (const HeldIndex index : lent_) pool_.free(index);
  lent_.clear();
}

void FaultTransport::release_delayed(Instant now, Output& output) {
  while (!delayed_.empty() && output.room() > 0 && pool_[delayed_.front()].due <= now) {
    const HeldIndex index = delayed_.pop();
    Held& held = pool_[index];
    if (held.fate.reorder > 0) {
      held.due = now + kReorderHold;
      overtaken_.push_back(index);
      ++faults_.reordered;
      continue;
    }
    const bool twice = held.fate.duplicate;
    lend(index, output);
    if (twice) duplicate(pool_.view(index));
    on_overtaken();
  }
}

void FaultTransport::release_overdue(Instant now) {
  std::erase_if(overtaken_, [&](HeldIndex index) {
    if (pool_[index].due > now) return false;
    ready_.push(index);
    return true;
  });
}

void FaultTransport::hand_out_ready(Output& output, std::size_t keep_free) {
  while (!ready_.empty() && output.room() > keep_free) {
    const HeldIndex index = ready_.pop();
    const bool twice = pool_[index].fate.duplicate;
    lend(index, output);
    if (!twice) continue;
    pool_[index].fate.duplicate = false;
    duplicate(pool_.view(index));
  }
}

// Takes one batch from the inner transport. Returns the number of datagrams in the batch.
std::size_t FaultTransport::take_in(Instant now, Output& output) {
  const std::size_t wanted = std::min(arrivals_.size(), output.room());
  const std::size_t count = inner_->receive(std::span(arrivals_).first(wanted));
  for (std::size_t i = 0; i < count; ++i) {
    on_arrival(now, arrivals_[i], output);
    hand_out_ready(output, count - i - 1);  // the rest of the batch needs a place each
  }
  return count;
}

void FaultTransport::on_arrival(Instant now, Received datagram, Output& output) {
  PacketAddress address;
  if (!read_address(datagram.bytes, self_, address)) {
    ++faults_.undecodable;
    output.put(datagram);
    return;
  }
  const Fate fate = plan_.fate(address);
  if (fate.lost) {
    ++(address.control ? faults_.lost_control : faults_.lost_data);
    return;
  }
  if (fate.corrupt) {
    flip_bit(summed_part(datagram.bytes, address), fate.corrupt_bit);
    ++faults_.corrupted;
  }
  if (fate.delay > Duration{0} && delay(now, datagram, fate)) return;
  if (fate.reorder > 0 && hold_back(now, datagram, fate)) return;
  output.put(datagram);
  on_overtaken();
  if (fate.duplicate) duplicate(datagram);
}

// Call this for each datagram that is handed out, which thereby overtakes all datagrams in
// overtaken_. Those that have now been overtaken often enough become ready.
void FaultTransport::on_overtaken() {
  std::erase_if(overtaken_, [&](HeldIndex index) {
    if (--pool_[index].fate.reorder > 0) return false;
    ready_.push(index);
    return true;
  });
}

// Keeps a copy of the datagram until `due`, with the faults that are still to happen to it. If
// there is no room, returns nullopt and adds 1 to not_held.
std::optional<HeldIndex> FaultTransport::hold(const Received& datagram, const Fate& fate,
                                              Instant due) {
  const auto index = pool_.keep(datagram);
  if (index) {
    pool_[*index].fate = fate;
    pool_[*index].due = due;
  } else {
    ++faults_.not_held;
  }
  return index;
}

bool FaultTransport::delay(Instant now, const Received& datagram, const Fate& fate) {
  const auto index = hold(datagram, fate, now + fate.delay);
  if (!index) return false;
  delayed_.push(*index);
  ++faults_.delayed;
  return true;
}

bool FaultTransport::hold_back(Instant now, const Received& datagram, const Fate& fate) {
  const auto index = hold(datagram, fate, now + kReorderHold);
  if (!index) return false;
  overtaken_.push_back(*index);
  ++faults_.reordered;
  return true;
}

void FaultTransport::duplicate(const Received& datagram) {
  const auto index = hold(datagram, {}, {});
  if (!index) return;
  ready_.push(*index);
  ++faults_.duplicated;
}

void FaultTransport::lend(HeldIndex index, Output& output) {
  output.put(pool_.view(index));
  lent_.push_back(index);
}

Instant FaultTransport::next_release() const {
  Instant next = Instant::infinite_future();
  if (!delayed_.empty()) next = pool_[delayed_.front()].due;
  for (const HeldIndex index : overtaken_) next = std::min(next, pool_[index].due);
  return next;
}

std::vector<std::pair<std::string, std::uint64_t>> FaultTransport::named_fault_counters() const {
  return {
      {"injected_lost_data", faults_.lost_data},   {"injected_lost_control", faults_.lost_control},
      {"injected_duplicated", faults_.duplicated}, {"injected_reordered", faults_.reordered},
      {"injected_corrupted", faults_.corrupted},   {"injected_delayed", faults_.delayed},
      {"injected_not_held", faults_.not_held},     {"injected_undecodable", faults_.undecodable}};
}

}  // namespace leeway::transport
