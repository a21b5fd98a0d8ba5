// How long a datagram may be on one path (RFC 8899, WIRE 10.2, 10.5).
//
// Padded probes find out; nothing else tells, since messages of routers may be forged or lost. A
// path starts at a size that nearly every network carries. Longer datagrams that vanish while short
// ones arrive mean that the path has become narrower: it is used at that size again, and searched
// anew. Three of them are a suspicion that probes look into; ten are proof.
//
// Time comes in, and lengths of probes come out. Lengths are those of datagrams before a seal.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace leeway::protocol {

// What all paths of a process have in common.
struct SizeLimits {
  // The longest datagram that this process can send; 0: paths carry whatever it sends, and nothing
  // is searched.
  std::size_t most = 0;
  // Bytes that a seal adds to each.
  std::size_t around = 0;
  // How long a path stays as it was found before longer datagrams are tried again.
  Duration raise = std::chrono::seconds(600);
};

// Payload of UDP that every path is taken to carry (RFC 8899 5.1.2): IPv6 promises 1,280 bytes.
inline constexpr std::size_t kBaseDatagramBytes = 1200;

struct SizeProbe {
  std::uint32_t number = 0;
  std::size_t bytes = 0;
};

// What a report says of the datagrams that it is the first to cover.
struct CoveredArrivals {
  std::uint32_t largest = 0;  // it covers those up to this number
  std::uint32_t received = 0;
  std::uint32_t received_bytes = 0;
};

class PathSize {
 public:
  // Before anything is sent.
  void configure(const SizeLimits& limits);
  // The longest datagram that the path carries, as far as is known.
  std::size_t bytes() const { return bytes_; }
  std::size_t base() const { return base_; }
  // A search has shown that not even the shortest length of all passes, while shorter datagrams
  // did.
  bool too_narrow() const { return settled() && searches() && least_ == 0; }
  // Nothing is being looked for: bytes() is what there is.
  bool settled() const { return !searches() || resting_; }

  // The path has been heard, and its round trip is known. Only the first call counts.
  void begin(Instant now);
  // The path leads elsewhere now.
  void begin_anew(Instant now);
  // Through others, who add so many bytes to each datagram besides.
  void begin_anew(Instant now, std::size_t further);
  // When poll() is due.
  Instant wake_at() const { return wake_at_; }
  // The next probe to send. `timeout`: how long an answer may take.
  std::optional<SizeProbe> poll(Instant now, Duration timeout);
  // The next probe waits as long as one that raises a settled size.
  void postpone(Instant now) { wake_at_ = now + limits_.raise; }
  // False: it answers nothing that was ever asked.
  bool on_answer(Instant now, std::uint32_t number, std::size_t bytes);

  // A train left, whose last datagram has that number. Datagrams are as long as on the wire.
  void on_sent(std::uint32_t last, std::uint32_t datagrams, std::size_t segment_bytes,
               std::size_t last_bytes);
  // Of the datagrams that a report covers; each report covers later ones.
  void on_report(Instant now, const CoveredArrivals& arrivals, Duration rtt);
  // The system refuses a datagram of this length on this path.
  void on_refused(Instant now, std::size_t bytes);

  // Datagrams that were lost for their length, since this was asked last: no sign of congestion.
  std::uint32_t take_lost_for_length();
  // How often the path became narrower.
  std::uint32_t falls() const { return falls_; }

 private:
  // A train of which datagrams are not reported yet.
  struct Departed {
    std::uint32_t last = 0;
    std::uint32_t datagrams = 0;
    std::uint32_t longs = 0;        // of these, the first ones: longer than the base
    std::uint32_t short_bytes = 0;  // of one that is not
  };
  struct Covered {
    std::uint32_t longs = 0;
    std::uint32_t shorts = 0;
    std::uint32_t short_bytes = 0;
    std::uint32_t short_most = 0;  // of one
  };

  bool searches() const { return most() > base_; }
  std::optional<std::size_t> candidate(std::size_t index) const;
  void search(Instant now);
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
  std::size_t least_ = 0;  // the longest probe up to the base that was answered; 0: none
  std::size_t bytes_ = SIZE_MAX;

  Instant wake_at_ = Instant::infinite_future();
  bool begun_ = false;
  bool resting_ = false;
  bool top_alone_ = false;  // the first try of the first search
  bool verifying_ = false;  // asks whether bytes_ still passes
  bool heard_ = false;      // a report told of arrivals since the try
  int tries_ = 0;
  int unheard_ = 0;  // tries that did not count, since nothing was heard
  std::size_t next_candidate_ = 0;
  std::uint32_t next_number_ = 1;
  std::uint32_t first_number_ = 1;  // of this search

  std::vector<Departed> departed_;  // a ring
  std::size_t first_departed_ = 0;
  std::size_t departed_count_ = 0;

  // Since a long datagram was last known to have arrived
  std::uint32_t longs_lost_ = 0;
  std::uint32_t shorts_arrived_ = 0;
  Instant losing_since_{0};
  std::uint32_t lost_for_length_ = 0;
  std::uint32_t falls_ = 0;
};

}  // namespace leeway::protocol
