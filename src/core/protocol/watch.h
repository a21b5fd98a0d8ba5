// Watches whether a peer lives while something is expected from it (WIRE 6.6). This class decides
// when to look at the peer and when to probe it; Liveness looks and probes.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "protocol/path.h"

namespace leeway::protocol {

class Watch {
 public:
  bool on() const { return on_; }
  // Time since the first unanswered probe, 0 if there is none. It is short for a live peer, which
  // answers even if its calls are late.
  Duration unanswered(Instant now) const {
    return on_ && probing_ ? now - probing_since_ : Duration(0);
  }
  // Starts to watch: something is expected from `now` on. Returns when to look first.
  Instant start(Instant now, const RoundTrip& rtt, Duration peer_timeout);

  struct Look {
    enum class Verdict : std::uint8_t { lives, probe, dead } verdict = Verdict::lives;
    Instant again_at = Instant::infinite_future();
  };
  // Call it when an operation has ended without something that the peer owes it. The peer is then
  // watched until it speaks, even if no operation waits any more. Lossy operations end by their
  // deadlines long before the peer time-out.
  void keep() { kept_ = on_; }
  // `heard_at`: when the peer's process gave its last sign of life. `expected`: whether something
  // still is expected from it.
  Look look(Instant now, Instant heard_at, bool expected, const RoundTrip& rtt,
            Duration peer_timeout);

 private:
  bool on_ = false;
  bool kept_ = false;  // keep()
  Instant silent_since_{0};
  Instant next_at_{0};        // looks before this time do nothing
  Instant probing_since_{0};  // first probe without an answer
  bool probing_ = false;
};

}  // namespace leeway::protocol
