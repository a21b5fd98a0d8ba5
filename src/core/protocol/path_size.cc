#include "protocol/path_size.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/serial_number.h"

namespace leeway::protocol {
namespace {

// UDP payloads worth trying beside the longest one:
// - 548: a packet of 576 bytes, which IPv4 promises to carry, less headers of IPv4 and UDP;
// - 952: a packet of 1,000 bytes less headers of IPv6 and UDP;
// - the base, kBaseDatagramBytes;
// - 1400, 1452, 1472: Ethernet's 1,500 bytes less the headers of a tunnel, of IPv6, of IPv4;
// - 4000 and 8972: InfiniBand's packets, and jumbo frames.
constexpr std::array<std::size_t, 8> kSizes = {548,  952, kBaseDatagramBytes, 1400, 1452, 1472,
                                               4000, 8972};

// Number of unanswered probes after which a size is taken not to pass (RFC 8899 5.1.2, MAX_PROBES).
constexpr int kTriesMax = 3;

// Limit on the pause between tries while the peer is not heard, unless the time-out is longer.
constexpr Duration kUnheardPauseMax = std::chrono::seconds(1);

// A path has become narrower when three things hold. At least kLongsLost long datagrams (longer
// than the base) in a row were lost, over at least kRoundTrips round trips. Meanwhile at least
// kShortsArrived datagrams arrived, all short. At 10 % loss, ten in a row are lost by chance once
// in 10^10.
constexpr std::uint32_t kLongsLost = 10;
constexpr std::uint32_t kShortsArrived = 3;
constexpr int kRoundTrips = 2;

// After this many long datagrams lost in a row, probes ask whether the path still carries their
// length. Small operations send few long datagrams, so kLongsLost would take many operations.
constexpr std::uint32_t kLongsSuspect = 3;

// Number of trains that are remembered until a report covers them. Older ones are forgotten.
constexpr std::size_t kDepartedMax = 256;

}  // namespace

void PathSize::configure(const SizeLimits& limits) {
  limits_ = limits;
  if (limits.most == 0) return;
  reset_base();
  if (searches()) departed_.resize(kDepartedMax);
}

void PathSize::begin(Instant now) {
  if (begun_ || !searches()) return;
  begun_ = top_alone_ = true;
  search(now);
}

void PathSize::reset_base() {
  bytes_ = base_ = std::min(kBaseDatagramBytes - around(), most());
}

void PathSize::search(Instant now) {
  begin_tries(now);
  unheard_ = 0;
  next_candidate_ = 0;
}

void PathSize::begin_tries(Instant now) {
  resting_ = false;
  tries_ = 0;
  first_number_ = next_number_;
  wake_at_ = now;
}

void PathSize::rest(Instant now) {
  resting_ = true;
  wake_at_ = bytes_ == most() ? Instant::infinite_future() : now + limits_.raise;
}

// Returns the length to probe at place `index` of a search: one of kSizes, or at last the longest
// length. Returns nullopt if that length is not tried now.
std::optional<std::size_t> PathSize::candidate(std::size_t index) const {
  if (index == kSizes.size()) return most();
  const std::size_t bytes = kSizes[index] - around();
  return bytes < most() && !top_alone_ ? std::optional(bytes) : std::nullopt;
}

// The very first try probes only the interface's own length, which usually passes. Later tries
// probe every length that is not known to pass, including the base and shorter ones.
std::optional<SizeProbe> PathSize::poll(Instant now, Duration timeout) {
  if (now < wake_at_) return std::nullopt;
  if (verifying_) return poll_verifying(now, timeout);
  if (resting_) search(now);
  // If the peer was not heard during the last try, it may be away, so that try does not count.
  if (next_candidate_ == 0 && tries_ > 0 && least_ == 0 && !heard_) {
    --tries_;
    ++unheard_;
  }
  if (tries_ == kTriesMax) {
    if (bytes_ == base_ && least_ != 0) bytes_ = base_ = least_;
    rest(now);
    return std::nullopt;
  }
  while (next_candidate_ <= kSizes.size()) {
    const auto bytes = candidate(next_candidate_++);
    if (bytes && *bytes > (bytes_ > base_ ? bytes_ : least_))
      return SizeProbe{next_number_++, *bytes};
  }
  next_candidate_ = 0;
  tries_ += top_alone_ ? 0 : 1;
  top_alone_ = heard_ = false;
  const Duration pause = std::max<Duration>(timeout, kUnheardPauseMax);
  wake_at_ = now + std::min<Duration>(timeout * (1 << std::min(unheard_, 10)), pause);
  return std::nullopt;
}

void PathSize::verify(Instant now) {
  begin_tries(now);
  verifying_ = true;
}

std::optional<SizeProbe> PathSize::poll_verifying(Instant now, Duration timeout) {
  if (tries_++ < kTriesMax) {
    wake_at_ = now + timeout;
    return SizeProbe{next_number_++, bytes_};
  }
  verifying_ = false;
  longs_lost_ >= kLongsSuspect ? fall(now) : rest(now);
  return std::nullopt;
}

bool PathSize::on_answer(Instant now, std::uint32_t number, std::size_t bytes) {
  if (!begun_ || !after(next_number_, number)) return false;
  // This answer belongs to an earlier search, perhaps of a wider path, so it is ignored.
  if (after(first_number_, number)) return true;
  if (bytes > most()) return false;
  least_ = std::max(least_, std::min(bytes, base_));
  if (verifying_ && bytes == bytes_) {
    verifying_ = false;
    longs_lost_ = shorts_arrived_ = 0;
    rest(now);
  }
  if (bytes <= bytes_) return true;
  bytes_ = bytes;
  longs_lost_ = shorts_arrived_ = 0;
  if (bytes_ == most()) rest(now);
  return true;
}

void PathSize::fall(Instant now) {
  ++falls_;
  begin_anew(now);
}

void PathSize::begin_anew(Instant now) {
  if (!begun_) return;
  reset_base();
  least_ = 0;
  top_alone_ = verifying_ = false;
  longs_lost_ = shorts_arrived_ = 0;
  search(now);
}

void PathSize::begin_anew(Instant now, std::size_t further) {
  further_ = further;
  if (limits_.most == 0) return;
  reset_base();
  if (searches() && departed_.empty()) departed_.resize(kDepartedMax);
  begin_anew(now);
}

void PathSize::on_refused(Instant now, std::size_t bytes) {
  if (bytes <= bytes_ && bytes_ > base_) fall(now);
}

void PathSize::on_sent(std::uint32_t last, std::uint32_t datagrams, std::size_t segment_bytes,
                       std::size_t last_bytes) {
  if (departed_.empty()) return;
  if (departed_count_ == departed_.size()) {
    first_departed_ = (first_departed_ + 1) % departed_.size();
    --departed_count_;
  }
  std::uint32_t longs = 0;
  if (segment_bytes > base_) longs = last_bytes > base_ ? datagrams : datagrams - 1;
  const std::size_t short_bytes = segment_bytes > base_ ? last_bytes : segment_bytes;
  departed_[(first_departed_ + departed_count_++) % departed_.size()] = {
      last, datagrams, longs, static_cast<std::uint32_t>(short_bytes)};
}

PathSize::Covered PathSize::cover(std::uint32_t largest) {
  Covered covered;
  for (; departed_count_ > 0; --departed_count_) {
    Departed& train = departed_[first_departed_];
    if (after(train.last - train.datagrams + 1, largest)) break;
    const std::uint32_t before = train.last - train.datagrams;
    const std::uint32_t count = std::min(train.datagrams, largest - before);
    const std::uint32_t longs = std::min(count, train.longs);
    covered.longs += longs;
    covered.shorts += count - longs;
    covered.short_bytes += (count - longs) * train.short_bytes;
    if (count > longs) covered.short_most = std::max(covered.short_most, train.short_bytes);
    train.longs -= longs;
    train.datagrams -= count;
    if (train.datagrams > 0) break;
    first_departed_ = (first_departed_ + 1) % departed_.size();
  }
  return covered;
}

// Returns true if no long datagram can be among those that arrived. There are three cases:
// - No more bytes arrived than one long datagram has.
// - No more datagrams, and no more bytes, arrived than were sent in short datagrams.
// - More datagrams arrived than short ones were sent, so the network has made copies. Their mean
//   length must then be that of the short ones, because one long datagram would raise it.
bool PathSize::all_short(const CoveredArrivals& arrivals, const Covered& covered) const {
  if (arrivals.received_bytes <= base_) return true;
  if (covered.shorts == 0) return false;
  if (arrivals.received <= covered.shorts) return arrivals.received_bytes <= covered.short_bytes;
  return arrivals.received_bytes * std::uint64_t{covered.shorts} <=
         covered.short_bytes * std::uint64_t{arrivals.received} + covered.shorts * base_ / 2;
}

void PathSize::on_report(Instant now, const CoveredArrivals& arrivals, Duration rtt) {
  if (departed_.empty()) return;
  heard_ = heard_ || arrivals.received > 0;
  const Covered covered = cover(arrivals.largest);
  if (!all_short(arrivals, covered)) {
    // A long datagram has arrived if more bytes came than the longest short datagram has, times the
    // number of arrivals. If not, all arrivals may be copies of short datagrams.
    if (arrivals.received_bytes > std::uint64_t{arrivals.received} * covered.short_most)
      longs_lost_ = shorts_arrived_ = 0;
    return;
  }
  if (covered.longs == 0 && longs_lost_ == 0) return;
  if (longs_lost_ == 0) losing_since_ = now - rtt;
  const std::uint32_t lost_before = longs_lost_;
  longs_lost_ += covered.longs;
  shorts_arrived_ += arrivals.received;
  if (longs_lost_ >= kLongsLost && shorts_arrived_ > 0)
    lost_for_length_ += lost_before >= kLongsLost ? covered.longs : longs_lost_;
  const bool narrower = longs_lost_ >= kLongsLost && shorts_arrived_ >= kShortsArrived &&
                        now - losing_since_ >= kRoundTrips * rtt;
  if (bytes_ == base_) return;
  if (narrower) return fall(now);
  if (longs_lost_ >= kLongsSuspect && shorts_arrived_ > 0 && resting_) verify(now);
}

std::uint32_t PathSize::take_lost_for_length() {
  return std::exchange(lost_for_length_, 0);
}

}  // namespace leeway::protocol
