#include "congestion/receive_room.h"

namespace leeway::congestion {
namespace {

// How often grants change. The interval is long compared with a busy host's pauses, and short
// compared with the time in which a peer fills the buffer again.
constexpr Duration kWindow = std::chrono::milliseconds(100);
// How long a drop waits until it is matched with a missing datagram of a sender. A datagram is
// found missing when the sender's next datagram arrives. None is ever found missing if what was
// dropped was the sender's last datagram, a copy or junk.
constexpr Duration kPendingMost = std::chrono::seconds(1);
constexpr Duration kFreeAfter = std::chrono::seconds(10);
constexpr double kKeep = 0.95;       // fraction of the rate at which the host reads
constexpr double kSlackFirst = 0.5;  // fraction of the buffer
constexpr double kSlackLeast = 1.0 / 16;
constexpr double kGrow = 1.25;  // factor for a window without drops

}  // namespace

void ReceiveRoom::look(Instant now, std::uint64_t drops, std::size_t socket_bytes,
                       std::span<const Arrived> arrived) {
  if (peers_.size() < arrived.size()) peers_.resize(arrived.size());
  std::uint64_t bytes = 0;
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    Peer& peer = peers_[i];
    const auto grown = static_cast<std::int32_t>(arrived[i].missing - peer.arrived.missing);
    const std::uint32_t more = arrived[i].bytes - peer.arrived.bytes;
    peer.grown = static_cast<std::uint32_t>(std::max(grown, 0));
    peer.arrived = arrived[i];
    missing += peer.grown;
    bytes += more;
    active_ += more > 0 && !peer.active;
    peer.active |= more > 0;
  }
  const std::uint64_t dropped = drops - drops_seen_;
  drops_seen_ = drops;
  if (!looked_) {  // drops and bytes before the first look have no known time
    looked_ = true;
    window_began_ = now;
    return;
  }
  if (dropped > 0) dropped_at_ = now;
  if (now - dropped_at_ > kPendingMost) pending_ = 0;
  pending_ += dropped;
  share_out(missing);
  measure(now, bytes);
  adapt(now, dropped > 0, socket_bytes);
}

// Divides drops among peers, in proportion to their newly missing datagrams. Each peer's part is
// rounded from the sum of this peer's and all earlier peers' parts, minus what the earlier peers
// got. So rounding loses no drop.
void ReceiveRoom::share_out(std::uint64_t missing) {
  const std::uint64_t shared = std::min(pending_, missing);
  if (shared == 0) return;
  std::uint64_t sum = 0;
  std::uint64_t given = 0;
  for (Peer& peer : peers_) {
    sum += peer.grown;
    const std::uint64_t part = sum * shared / missing - given;
    peer.drops = static_cast<std::uint16_t>(peer.drops + part);
    given += part;
  }
  pending_ -= shared;
}

void ReceiveRoom::measure(Instant now, std::uint64_t bytes) {
  window_bytes_ += bytes;
  const Duration elapsed = now - window_began_;
  if (elapsed < kWindow) return;
  arrival_rate_ = static_cast<double>(window_bytes_) / to_seconds(elapsed);
  sharing_ = std::max<std::size_t>(active_, 1);
  active_ = 0;
  for (Peer& peer : peers_) peer.active = false;
  window_bytes_ = 0;
  window_began_ = now;
}

void ReceiveRoom::adapt(Instant now, bool dropped, std::size_t socket_bytes) {
  const auto buffer = static_cast<double>(socket_bytes);
  if (dropped && (!limited() || now - cut_at_ >= kWindow)) {
    cut_at_ = adapted_at_ = now;
    slack_ = limited() ? std::max(slack_ / 2, kSlackLeast * buffer) : kSlackFirst * buffer;
    rate_ = kKeep * arrival_rate_;
    return;
  }
  if (!limited() || now - adapted_at_ < kWindow) return;
  adapted_at_ = now;
  slack_ = std::min(slack_ * kGrow, buffer);
  rate_ *= kGrow;
  if (now - dropped_at_ >= kFreeAfter) slack_ = rate_ = 0;
}

std::uint32_t ReceiveRoom::grant(std::size_t peer) const {
  if (!limited()) return UINT32_MAX;
  const double all = rate_ * to_seconds(peers_[peer].arrived.rtt) + slack_;
  const std::size_t sharers = std::max(sharing_, active_);
  return static_cast<std::uint32_t>(
      std::min(all / static_cast<double>(sharers), static_cast<double>(UINT32_MAX - 1)));
}

}  // namespace leeway::congestion
