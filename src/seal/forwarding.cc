#include "seal/forwarding.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::seal {
namespace {

// Trains come at once: the share is that of so long a time, and of two long trains at least.
constexpr double kBurstSeconds = 0.05;
constexpr double kBurstBytesMin = 2 * 65'536;
// The last bytes are for what is short. It finds out whether the path is there at all.
constexpr double kReservedBytes = 8'192;
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

bool Forwarding::spend(Instant now, std::size_t bytes) {
  const double most = std::max(bytes_per_second_ * kBurstSeconds, kBurstBytesMin);
  if (filled_at_ == Instant::infinite_future()) {
    tokens_ = most;
  } else {
    const double seconds = static_cast<double>((now - filled_at_).count()) / 1e9;
    tokens_ = std::min(most, tokens_ + bytes_per_second_ * seconds);
  }
  filled_at_ = now;
  const double left = tokens_ - static_cast<double>(bytes);
  if (left < (bytes <= kShortBytes ? 0 : kReservedBytes)) return false;
  tokens_ = left;
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
