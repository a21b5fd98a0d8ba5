// Multicast between this rank and one peer: which of our multicast datagrams the peer saw, and
// which of its multicast datagrams we saw. Numbering and credit work as in Path.
//
// Only a trial shows whether a network carries multicast to a peer: a peer that never reports any
// multicast does not hear it.
#pragma once

#include <cstdint>

#include "protocol/serial_number.h"

namespace leeway::protocol {

class GroupPath {
 public:
  // Sending side. Call it when the peer reports `largest`, the latest of our multicast datagrams
  // that it saw. `sent` is the latest that we sent. Numbers begin at 1. Returns false if that
  // datagram was never sent.
  bool on_report(std::uint32_t sent, std::uint32_t largest) {
    if (after(largest, sent)) return false;
    if (!after(largest, acknowledged_)) return true;
    acknowledged_ = largest;
    hears_ = true;
    return true;
  }
  std::uint32_t in_flight(std::uint32_t sent) const { return sent - acknowledged_; }
  bool hears() const { return hears_; }
  // Call give_up() when the peer reports no new multicast datagrams. The peer then gets unicast
  // until it reports a new one.
  void give_up() { hears_ = false; }

  // Receiving side.
  void on_arrival(std::uint32_t sequence) {
    if (largest_seen_ == 0 || after(sequence, largest_seen_)) largest_seen_ = sequence;
  }
  std::uint32_t largest_seen() const { return largest_seen_; }
  std::uint32_t unreported() const { return largest_seen_ - largest_reported_; }
  void on_reported() { largest_reported_ = largest_seen_; }

 private:
  std::uint32_t acknowledged_ = 0;
  bool hears_ = false;
  std::uint32_t largest_seen_ = 0;
  std::uint32_t largest_reported_ = 0;
};

}  // namespace leeway::protocol
