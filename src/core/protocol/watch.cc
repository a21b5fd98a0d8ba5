#include "protocol/watch.h"

#include <algorithm>
#include <utility>

namespace leeway::protocol {
namespace {

// After this many time-outs of silence, and at least kSuspectMin, a peer is suspect and is probed.
constexpr int kSuspectTimeouts = 4;
constexpr Duration kSuspectMin = std::chrono::milliseconds(500);

// Number of probes between suspicion and death. Where half of all datagrams are lost each way, one
// probe of four is answered. Then six probes in a row fail in 18 % of cases, and 24 in 0.1 %.
constexpr int kProbes = 24;

// Least silence before a peer counts as dead, in time-outs, however short the peer time-out is. In
// a shorter silence not even three probes could be answered on a long, lossy path.
constexpr int kDeadTimeouts = 8;

Duration suspect_after(const RoundTrip& rtt, Duration patience) {
  return std::min(std::max(kSuspectTimeouts * rtt.timeout(), kSuspectMin), patience / 2);
}

Duration patience_of(const RoundTrip& rtt, Duration peer_timeout) {
  return std::max(peer_timeout, kDeadTimeouts * rtt.timeout());
}

}  // namespace

Instant Watch::start(Instant now, const RoundTrip& rtt, Duration peer_timeout) {
  on_ = true;
  kept_ = false;
  silent_since_ = now;
  probing_ = false;
  return next_at_ = now + suspect_after(rtt, patience_of(rtt, peer_timeout));
}

Watch::Look Watch::look(Instant now, Instant heard_at, bool expected, const RoundTrip& rtt,
                        Duration peer_timeout) {
  if (now < next_at_) return {.again_at = next_at_};
  if (heard_at > silent_since_) {
    silent_since_ = heard_at;
    probing_ = kept_ = false;
  }
  if (!expected && !kept_) {
    on_ = false;
    return {};
  }
  const Duration patience = patience_of(rtt, peer_timeout);
  const Duration unsuspected = suspect_after(rtt, patience);
  next_at_ = silent_since_ + unsuspected;
  if (now < next_at_) return {.again_at = next_at_};
  if (!std::exchange(probing_, true)) probing_since_ = now;
  // A process that was itself stopped finds all others silent when it goes on. It must give them
  // time to answer before it takes them for dead.
  const Duration probed = patience - unsuspected;
  const Instant end = std::max(silent_since_ + patience, probing_since_ + probed / 2);
  if (now >= end) return {Look::Verdict::dead};
  next_at_ = std::min(now + probed / kProbes, end);
  return {Look::Verdict::probe, next_at_};
}

}  // namespace leeway::protocol
