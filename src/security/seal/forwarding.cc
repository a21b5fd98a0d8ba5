#include "seal/forwarding.h"

#include <algorithm>
#include <cmath>

#include "base/contracts.h"

namespace leeway::seal {
namespace {

// The token bucket's size: kBurstSeconds at the forwarding rate, but at least two long batches,
// because a batch arrives all at once.
constexpr double kBurstSeconds = 0.05;
constexpr double kBurstBytesMin = 2 * 65'536;
// Bytes reserved for short datagrams, which find out whether the path works. Half of the forwarding
// rate fills the reserve. Short datagrams may use little more than the reserve. Otherwise END
// datagrams, reports and repair requests would pass, and the data for which they are sent would
// not.
constexpr double kReservedBytes = 8'192;
constexpr double kReservedPart = 0.5;
constexpr std::size_t kShortBytes = 256;
// Part of the forwarding rate that is promised to peers. The rest is for short datagrams beside
// data.
constexpr double kTellPart = 15.0 / 16;
// A peer shares the forwarding rate if it asked for forwarding within kAskingFor. It is told of new
// refusals, or of a share that changed by the fraction kChange, at most once in kTellPause. After
// kTellAgain it is told its share in any case.
constexpr Duration kAskingFor = std::chrono::seconds(1);
constexpr Duration kTellPause = std::chrono::milliseconds(25);
constexpr Duration kTellAgain = std::chrono::seconds(1);
constexpr double kChange = 1.0 / 8;
// Time over which a peer's forwarded bytes are averaged.
constexpr Duration kCounting = std::chrono::milliseconds(100);

}  // namespace

void Forwarding::meet(Rank slot, std::uint64_t name) {
  if (name == 0) return;
  if (slot >= names_.size()) {
    names_.resize(slot + std::size_t{1});
    askers_.resize(slot + std::size_t{1});
  }
  names_[slot] = name;
  const auto at = std::ranges::lower_bound(by_name_, name, {}, &Named::name);
  by_name_.insert(at, {name, slot});
}

Rank Forwarding::slot_of(std::uint64_t name) const {
  const auto at = std::ranges::lower_bound(by_name_, name, {}, &Named::name);
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

// Takes a datagram's tokens; returns false if there are too few. A short datagram uses the reserve.
// If the reserve is too small, the short datagram takes other tokens, but must leave kBurstBytesMin
// / 2 of them.
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

void Forwarding::note(Instant now, Rank from, std::size_t bytes, bool taken) {
  Asker& asker = askers_[from];
  if (!asker.ever || now - asker.asked_at > kAskingFor) {
    asker.counted_since = now;
    asker.counted = 0;
    asker.bytes_per_second = 0;
  }
  asker.ever = true;
  asker.asked_at = now;
  if (const Duration since = now - asker.counted_since; since >= kCounting) {
    asker.bytes_per_second =
        static_cast<double>(asker.counted) * 1e9 / static_cast<double>(since.count());
    asker.counted_since = now;
    asker.counted = 0;
  }
  asker.counted += taken ? bytes : 0;
  asker.refused += taken ? 0 : 1;
}

// Returns the peer's share in bytes per second: an equal part, or what the others leave if that is
// more.
double Forwarding::share_of(Instant now, Rank from) const {
  const double all = kTellPart * bytes_per_second_;
  double others = 0;
  int asking = 1;
  for (Rank slot = 0; slot < askers_.size(); ++slot) {
    const Asker& one = askers_[slot];
    if (slot == from || !one.ever || now - one.asked_at > kAskingFor) continue;
    others += one.bytes_per_second;
    ++asking;
  }
  return std::max(all / asking, all - others);
}

std::optional<ShareMessage> Forwarding::share_for(Instant now, Rank from) {
  if (from >= askers_.size()) return std::nullopt;
  Asker& asker = askers_[from];
  if (asker.refused == 0) return std::nullopt;
  const bool told = asker.told > 0;
  if (told && now - asker.told_at < kTellPause) return std::nullopt;
  const double share = share_of(now, from);
  const bool due = !told || asker.refused != asker.refused_told ||
                   now - asker.told_at >= kTellAgain ||
                   std::abs(share - asker.told) > kChange * asker.told;
  if (!due) return std::nullopt;
  asker.told = share;
  asker.told_at = now;
  asker.refused_told = asker.refused;
  return ShareMessage{asker.refused, static_cast<std::uint64_t>(share)};
}

std::optional<Rank> Forwarding::forward(Instant now, Rank from, const RelayHead& head, Ecn ecn,
                                        const Roaming& roaming, MutableByteSpan opened) {
  LEEWAY_ASSERT(head.kind == RelayHead::Kind::onward);
  const Rank to = slot_of(head.name);
  const std::uint64_t name = name_of(from);
  // The target must be reached directly, so no datagram takes more than two hops.
  if (to == kNoRank || to == from || name == 0 || !roaming.knows(to) || !roaming.settled(to)) {
    ++counters_.refused_target;
    return std::nullopt;
  }
  const std::size_t bytes = opened.size() + kOverheadBytes;
  const bool taken = spend(now, bytes);
  note(now, from, bytes, taken);
  if (!taken) {
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
