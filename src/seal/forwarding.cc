#include "seal/forwarding.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::seal {
namespace {

// Trains come at once: the share is that of so long a time, and of two long trains at least.
constexpr double kBurstSeconds = 0.05;
constexpr double kBurstBytesMin = 2 * 65'536;
// Bytes for what is short: it finds out whether the path is there at all. They are filled with half
// of the share. All of it let ends, reports and requests for repair pass, and never the data that
// these were about.
constexpr double kReservedBytes = 8'192;
constexpr double kReservedPart = 0.5;
constexpr std::size_t kShortBytes = 256;

}  // namespace

void Forwarding::meet(Rank slot, std::uint64_t name) {
  if (name == 0) return;
  if (slot >= names_.size()) names_.resize(slot + std::size_t{1});
  names_[slot] = name;
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [](const Named& one, std::uint64_t key) { return one.name < key; });
  by_name_.insert(at, {name, slot});
}

Rank Forwarding::slot_of(std::uint64_t name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [](const Named& one, std::uint64_t key) { return one.name < key; });
  return at != by_name_.end() && at->name == name ? at->slot : kNoRank;
}

void Forwarding::set_uplink(double bits_per_second) {
  bytes_per_second_ = kShare * (bits_per_second > 0 ? bits_per_second : kUplinkUnknown) / 8;
}

void Forwarding::fill(Instant now) {
  const double most = std::max(bytes_per_second_ * kBurstSeconds, kBurstBytesMin) - kReservedBytes;
  if (filled_at_ == Instant::infinite_future()) {
    tokens_ = most;
    reserved_ = kReservedBytes;
  } else {
    const double bytes = bytes_per_second_ * static_cast<double>((now - filled_at_).count()) / 1e9;
    const double reserved = std::min(kReservedPart * bytes, kReservedBytes - reserved_);
    reserved_ += reserved;
    tokens_ = std::min(most, tokens_ + bytes - reserved);
  }
  filled_at_ = now;
}

// What is short takes of the rest only as long as most of that is there.
bool Forwarding::spend(Instant now, std::size_t size) {
  fill(now);
  const auto bytes = static_cast<double>(size);
  const bool is_short = size <= kShortBytes;
  if (is_short && reserved_ >= bytes) {
    reserved_ -= bytes;
    return true;
  }
  if (tokens_ < bytes + (is_short ? kBurstBytesMin / 2 : 0)) return false;
  tokens_ -= bytes;
  return true;
}

std::optional<Rank> Forwarding::forward(Instant now, Rank from, const RelayHead& head, Ecn ecn,
                                        const Roaming& roaming, MutableByteSpan opened) {
  LEEWAY_ASSERT(head.kind == RelayHead::Kind::onward);
  const Rank to = slot_of(head.name);
  const std::uint64_t name = name_of(from);
  // Never through another: what is relayed takes two hops
  if (to == kNoRank || to == from || name == 0 || !roaming.knows(to) || !roaming.settled(to)) {
    ++counters_.refused_target;
    return std::nullopt;
  }
  const std::size_t bytes = opened.size() + kOverheadBytes;
  if (!spend(now, bytes)) {
    ++counters_.refused_share;
    return std::nullopt;
  }
  ++counters_.datagrams;
  counters_.bytes += bytes;
  encode_relay_head({RelayHead::Kind::relayed, ecn, name}, opened);
  return to;
}

Associations::Opened Forwarding::open(Instant now, const RelayHead& head, Associations& seals,
                                      MutableByteSpan opened) const {
  const Rank origin = slot_of(head.name);
  Associations::Opened inner =
      seals.open_from_anywhere(now, origin, opened.subspan(kRelayHeadBytes));
  if (inner.from == kNoRank || inner.from == origin) return inner;
  return {};
}

}  // namespace leeway::seal
