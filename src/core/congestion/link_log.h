// Log of the datagrams that left towards one peer, for as long as reports may refer to them.
//
// A report names the newest datagram that arrived, and how many arrived in all. For each datagram
// the log has the number of bytes that the uplink had delivered when the datagram left. The present
// number of delivered bytes minus the logged one is what the uplink delivers in a round trip. A
// report looks up one datagram only, so its cost is constant.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace leeway::congestion {

struct Departure {
  Instant at;
  // State of the uplink when the datagram left. `sent`: bytes that had left, including this batch.
  // `covered`: bytes that reports had covered. `delivered`: bytes of `covered` that had arrived.
  // `delivered_at`: time of the latest report.
  std::uint64_t sent = 0;
  std::uint64_t covered = 0;
  std::uint64_t delivered = 0;
  Instant delivered_at;
  // Bytes that left on this link, up to and with this datagram.
  std::uint64_t bytes = 0;
  std::uint32_t phase = 0;
  bool limited = false;
};

class LinkLog {
 public:
  // Sets how many datagrams may be unreported at a time. The log forgets older ones.
  void make_room(std::size_t datagrams) {
    if (most_ >= datagrams) return;
    most_ = std::bit_ceil(datagrams);
    departures_.assign(std::min(most_, kFirst), Departure{});
  }

  // `unreported`: number of datagrams not yet reported, including this one.
  void on_sent(std::uint32_t sequence, Departure departure, std::uint32_t bytes,
               std::uint32_t unreported) {
    if (unreported > departures_.size() && departures_.size() < most_) [[unlikely]]
      grow();
    sent_bytes_ += bytes;
    departure.bytes = sent_bytes_;
    departures_[sequence & (departures_.size() - 1)] = departure;
    latest_ = sequence;
  }

  // Returns null if the datagram left too long ago.
  const Departure* find(std::uint32_t sequence) const {
    if (latest_ - sequence >= departures_.size()) return nullptr;
    return &departures_[sequence & (departures_.size() - 1)];
  }

  // Notes that a report covers all datagrams up to this one. Returns how many of their bytes no
  // earlier report covered.
  std::uint64_t cover(const Departure& departure) {
    const std::uint64_t before = covered_bytes_;
    if (departure.bytes > before) covered_bytes_ = departure.bytes;
    return covered_bytes_ - before;
  }
  std::size_t room() const { return most_; }
  bool empty() const { return sent_bytes_ == 0; }
  std::uint64_t under_way() const { return sent_bytes_ - covered_bytes_; }
  // Call it when no report is expected any more for the datagrams in flight.
  void write_off() { covered_bytes_ = sent_bytes_; }

 private:
  static constexpr std::size_t kFirst = 2048;

  // The log grows on demand: a window may be large, and most of it is never used.
  void grow() {
    std::vector<Departure> more(2 * departures_.size());
    for (std::size_t i = 0; i < departures_.size(); ++i) {
      const auto sequence = latest_ - static_cast<std::uint32_t>(i);
      more[sequence & (more.size() - 1)] = departures_[sequence & (departures_.size() - 1)];
    }
    departures_.swap(more);
  }

  std::vector<Departure> departures_;
  std::size_t most_ = 0;
  std::uint32_t latest_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t covered_bytes_ = 0;
};

}  // namespace leeway::congestion
