// Finds how long a datagram may be on one path (RFC 8899, WIRE 10.2, 10.5).
//
// PathSize asks by padded probes only, since messages of routers may be forged or lost. A path
// starts at a size that nearly every network carries. If longer datagrams vanish while short ones
// arrive, the path has become narrower: PathSize returns to the first size and searches anew. After
// three long ones lost in a row, probes ask whether the path is narrower; after ten, that is
// certain.
//
// Time comes in, and lengths of probes come out. Lengths are those of datagrams before a seal adds
// its bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace leeway::protocol {

// Settings that all paths of a process share.
struct SizeLimits {
  // Length in bytes of the longest datagram that this process can send. If it is 0, paths carry
  // whatever the process sends, and nothing is searched.
  std::size_t most = 0;
  // Bytes that a seal adds to each datagram.
  std::size_t around = 0;
  // How long a path keeps the size it found before longer datagrams are tried again.
  Duration raise = std::chrono::seconds(600);
};

// UDP payload that every path is taken to carry (RFC 8899 5.1.2): IPv6 promises 1,280 bytes.
inline constexpr std::size_t kBaseDatagramBytes = 1200;

struct SizeProbe {
  std::uint32_t number = 0;
  std::size_t bytes = 0;
};

// What arrived of the datagrams that this report covers and no earlier report covered.
struct CoveredArrivals {
  std::uint32_t largest = 0;  // the report covers datagrams up to this number
  std::uint32_t received = 0;
  std::uint32_t received_bytes = 0;
};

class PathSize {
 public:
  // Called before any datagram is sent.
  void configure(const SizeLimits& limits);
  // Longest datagram that the path is known to carry.
  std::size_t bytes() const { return bytes_; }
  std::size_t base() const { return base_; }
  // Returns true if a search has shown that not even the shortest probe passes, although shorter
  // datagrams do.
  bool too_narrow() const { return settled() && searches() && least_ == 0; }
  // Returns true if no search is going on, so that bytes() is final for now.
  bool settled() const { return !searches() || resting_; }

  // Call it when the path has been heard, and its round trip is known. Only the first call counts.
  void begin(Instant now);
  // Call it when the path leads to another address. The search begins anew.
  void begin_anew(Instant now);
  // Call it when the path leads through relays, which add `further` bytes to each datagram.
  void begin_anew(Instant now, std::size_t further);
  // Returns when poll() is due.
  Instant wake_at() const { return wake_at_; }
  // Returns the next probe to send. `timeout` is how long an answer may take.
  std::optional<SizeProbe> poll(Instant now, Duration timeout);
  void postpone(Instant now) { wake_at_ = now + limits_.raise; }
  // Takes in an answer to a probe. Returns false if no such probe was ever sent.
  bool on_answer(Instant now, std::uint32_t number, std::size_t bytes);

  // Notes that a train (GSO batch) left, whose last datagram has number `last`. Lengths are on the
  // wire.
  void on_sent(std::uint32_t last, std::uint32_t datagrams, std::size_t segment_bytes,
               std::size_t last_bytes);
  // Handles a report of what arrived of the datagrams that no earlier report covered.
  void on_report(Instant now, const CoveredArrivals& arrivals, Duration rtt);
  // Notes that the system refuses a datagram of this length on this path.
  void on_refused(Instant now, std::size_t bytes);

  // Returns the number of datagrams lost for their length since the last call. They are no sign of
  // congestion.
  std::uint32_t take_lost_for_length();
  // Number of times that the path became narrower.
  std::uint32_t falls() const { return falls_; }

 private:
  // A train with datagrams that no report has covered yet.
  struct Departed {
    std::uint32_t last = 0;
    std::uint32_t datagrams = 0;
    std::uint32_t longs = 0;        // datagrams longer than the base, which come first
    std::uint32_t short_bytes = 0;  // length of a short one
  };
  struct Covered {
    std::uint32_t longs = 0;
    std::uint32_t shorts = 0;
    std::uint32_t short_bytes = 0;
    std::uint32_t short_most = 0;  // length of the longest short one
  };

  bool searches() const { return most() > base_; }
  std::optional<std::size_t> candidate(std::size_t index) const;
  void reset_base();
  void search(Instant now);
  void begin_tries(Instant now);
  void verify(Instant now);
  std::optional<SizeProbe> poll_verifying(Instant now, Duration timeout);
  void rest(Instant now);
  void fall(Instant now);
  std::size_t most() const { return limits_.most - std::min(limits_.most, further_); }
  std::size_t around() const { return limits_.around + further_; }
  Covered cover(std::uint32_t largest);
  bool all_short(const CoveredArrivals& arrivals, const Covered& covered) const;

  SizeLimits limits_;
  std::size_t further_ = 0;  // bytes that relays add
  std::size_t base_ = SIZE_MAX;
  std::size_t least_ = 0;  // longest probe up to the base that was answered; 0 if none
  std::size_t bytes_ = SIZE_MAX;

  Instant wake_at_ = Instant::infinite_future();
  bool begun_ = false;
  bool resting_ = false;
  bool top_alone_ = false;  // the first try of the first search: probes the longest length alone
  bool verifying_ = false;  // asks whether bytes_ still passes
  bool heard_ = false;      // a report told of arrivals since the try
  int tries_ = 0;
  int unheard_ = 0;  // tries that did not count, since the peer was not heard
  std::size_t next_candidate_ = 0;
  std::uint32_t next_number_ = 1;
  std::uint32_t first_number_ = 1;  // first number of this search

  std::vector<Departed> departed_;  // a ring
  std::size_t first_departed_ = 0;
  std::size_t departed_count_ = 0;

  // Counts since a long datagram was last known to have arrived.
  std::uint32_t longs_lost_ = 0;
  std::uint32_t shorts_arrived_ = 0;
  Instant losing_since_{0};
  std::uint32_t lost_for_length_ = 0;
  std::uint32_t falls_ = 0;
};

}  // namespace leeway::protocol
