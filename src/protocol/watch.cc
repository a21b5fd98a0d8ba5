#include "protocol/watch.h"

#include <algorithm>

namespace leeway::protocol {
namespace {

// Silence before a peer is suspect.
constexpr int kSuspectTimeouts = 4;
constexpr Duration kSuspectMin = std::chrono::milliseconds(500);

// Probes that a dead peer has not answered. A process that was stopped itself finds the peer
// time-out over when it comes back, and must not take all others for dead.
constexpr std::uint32_t kProbesMin = 3;

// Probes between suspicion and the peer time-out.
constexpr int kProbes = 6;

Duration suspect_after(const RoundTrip& rtt, Duration peer_timeout) {
  return std::min(std::max(kSuspectTimeouts * rtt.timeout(), kSuspectMin), peer_timeout / 2);
}

}  // namespace

Instant Watch::start(Instant now, const RoundTrip& rtt, Duration peer_timeout) {
  on_ = true;
  silent_since_ = now;
  probes_ = 0;
  return next_at_ = now + suspect_after(rtt, peer_timeout);
}

Watch::Look Watch::look(Instant now, Instant heard_at, bool expected, const RoundTrip& rtt,
                        Duration peer_timeout) {
  if (now < next_at_) return {.again_at = next_at_};
  if (heard_at > silent_since_) {
    silent_since_ = heard_at;
    probes_ = 0;
    on_ = expected;
    if (!expected) return {};
  }
  const Duration patience = suspect_after(rtt, peer_timeout);
  next_at_ = silent_since_ + patience;
  if (now < next_at_) return {.again_at = next_at_};
  const Instant end = silent_since_ + peer_timeout;
  if (now >= end && probes_ >= kProbesMin) return {Look::Verdict::dead};
  ++probes_;
  next_at_ = now + (peer_timeout - patience) / kProbes;
  if (now < end) next_at_ = std::min(next_at_, end);
  return {Look::Verdict::probe, next_at_};
}

}  // namespace leeway::protocol
