// Whether a peer lives of whom something is expected (WIRE 6.6). Knows when to look and when to
// probe; Endpoint does it.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "protocol/path.h"

namespace leeway::protocol {

class Watch {
 public:
  bool on() const { return on_; }
  // How long it has been asked in vain whether it lives. One that only is late answers at once.
  Duration unanswered(Instant now) const {
    return on_ && probing_ ? now - probing_since_ : Duration(0);
  }
  // Something is expected from `now` on. When to look first.
  Instant start(Instant now, const RoundTrip& rtt, Duration peer_timeout);

  struct Look {
    enum class Verdict : std::uint8_t { lives, probe, dead } verdict = Verdict::lives;
    Instant again_at = Instant::infinite_future();
  };
  // `heard_at`: when the peer's process gave its last sign of life. `expected`: whether something
  // still is. A peer that was silent is watched until it speaks, even if nobody waits any more:
  // lossy rounds end by their deadlines long before the peer time-out.
  Look look(Instant now, Instant heard_at, bool expected, const RoundTrip& rtt,
            Duration peer_timeout);

 private:
  bool on_ = false;
  Instant silent_since_{0};
  Instant next_at_{0};        // nothing is to be looked at before
  Instant probing_since_{0};  // without an answer
  bool probing_ = false;
};

}  // namespace leeway::protocol
