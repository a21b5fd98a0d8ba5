// What left towards one peer, as long as reports may still speak of it.
//
// A report names the newest datagram that arrived and how much arrived in all. What the uplink had
// delivered when that datagram left stands here: the difference is what it delivers in a round
// trip. No datagram is looked at by itself, so that a report costs the same whatever it covers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace leeway::congestion {

struct Departure {
  Instant at;
  // The uplink at that time: what had left in all, this train included; what reports had covered,
  // and what of that had arrived; when it had heard of that.
  std::uint64_t sent = 0;
  std::uint64_t covered = 0;
  std::uint64_t delivered = 0;
  Instant delivered_at;
  // Of this link, up to and with this datagram
  std::uint64_t bytes = 0;
  std::uint32_t phase = 0;
  bool limited = false;
};

class LinkLog {
 public:
  // At most so many datagrams are unreported at a time; of older ones nothing is known.
  void make_room(std::size_t datagrams) {
    if (most_ >= datagrams) return;
    most_ = std::bit_ceil(datagrams);
    departures_.assign(std::min(most_, kFirst), Departure{});
  }

  // `unreported`: datagrams, with this one.
  void on_sent(std::uint32_t sequence, Departure departure, std::uint32_t bytes,
               std::uint32_t unreported) {
    if (unreported > departures_.size() && departures_.size() < most_) [[unlikely]]
      grow();
    sent_bytes_ += bytes;
    departure.bytes = sent_bytes_;
    departures_[sequence & (departures_.size() - 1)] = departure;
    latest_ = sequence;
  }

  // Null: it left too long ago.
  const Departure* find(std::uint32_t sequence) const {
    if (latest_ - sequence >= departures_.size()) return nullptr;
    return &departures_[sequence & (departures_.size() - 1)];
  }

  // Everything up to the datagram was reported; gives what that was.
  std::uint64_t cover(const Departure& departure) {
    const std::uint64_t before = covered_bytes_;
    if (departure.bytes > before) covered_bytes_ = departure.bytes;
    return covered_bytes_ - before;
  }
  std::size_t room() const { return most_; }
  bool empty() const { return sent_bytes_ == 0; }
  std::uint64_t under_way() const { return sent_bytes_ - covered_bytes_; }
  // Nobody will report what is under way.
  void write_off() { covered_bytes_ = sent_bytes_; }

 private:
  static constexpr std::size_t kFirst = 2048;

  // A window may be large, and most of it is never used.
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
