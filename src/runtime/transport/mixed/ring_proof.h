// Proves that two processes share the memory of their rings, and that each can wake the other.
//
// Two processes may map memory of the same name and still not share it (another host with the same
// boot id, another mount). They may also share memory without reaching each other by UDP. So a
// process uses a ring only when its own nonce has come back through the rings:
//
//   A: CHALLENGE(a) into its ring          B: the same with b
//   A: BELL(a) over UDP ---------------->  B: a bell came over UDP, and names what is in A's ring
//   A: reads ECHO(a) in B's ring  <------  B: ECHO(a) into its ring, BELL(b)
//
// An echo answers a bell, so it proves two things: the memory is shared, and UDP wakes the peer.
// Over sealed UDP a bell also proves that the writer of the ring is the member whose key sealed the
// bell. Each side decides only by which way it sends, and reads the peer's ring even before a
// proof. So the two sides need not agree on the way, and a late proof does no harm.
//
// This class is sans-IO: its caller passes the time and rings the bells.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace leeway::transport {

class RingProof {
 public:
  // Pause before a bell is repeated: kEvery at first, then twice as long each time, up to
  // kEveryMax.
  static constexpr Duration kEvery = std::chrono::milliseconds(2);
  static constexpr Duration kEveryMax = std::chrono::milliseconds(200);
  // A pair that has not proved its rings within this time stays with UDP.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  enum class Standing : std::uint8_t { open, proven, refused };

  // `nonce` is random and never 0. This process puts it into its ring.
  RingProof(Instant now, std::uint64_t nonce)
      : nonce_(nonce), until_(now + kPatience), bell_at_(now) {}

  std::uint64_t nonce() const { return nonce_; }
  Standing standing() const { return standing_; }

  // Call it when the peer said over UDP that it has put this nonce into its ring.
  void on_bell(std::uint64_t nonce) { claimed_ = nonce; }
  // Call it when this nonce was found in the ring that the peer writes.
  void on_challenge(std::uint64_t nonce) { found_ = nonce; }
  void on_echo(std::uint64_t nonce);

  // Call it when one of the two processes can never map the rings.
  void refuse() {
    if (standing_ == Standing::open) standing_ = Standing::refused;
  }

  // Returns the nonce that this process must echo into its ring, until on_echoed(). It is the nonce
  // that was found in the peer's ring, if the peer's bell named the same one.
  std::optional<std::uint64_t> echo_due() const;
  void on_echoed() { echoed_ = *found_; }
  // Returns true once this process has echoed the peer's nonce. Later bells of the peer only wake
  // this process.
  bool gave() const { return echoed_.has_value(); }

  // Returns true if a bell is due now; the caller must then ring it. After kPatience counts the
  // proof as refused.
  bool poll_bell(Instant now);
  Instant next_wake() const;

 private:
  const std::uint64_t nonce_;
  const Instant until_;
  Instant bell_at_;
  Duration every_ = kEvery;
  Standing standing_ = Standing::open;
  std::optional<std::uint64_t> claimed_;
  std::optional<std::uint64_t> found_;
  std::optional<std::uint64_t> echoed_;
};

}  // namespace leeway::transport
