// Queue of peers to which datagrams should be sent. Control datagrams go before data. Peers are
// served in rotation, and each waits at most once in either queue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/types.h"
#include "protocol/ring_queue.h"

namespace leeway::protocol {

class Outbox {
 public:
  // Data may also be queued for kEveryRank.
  explicit Outbox(int peers) : control_(peers), data_(peers + 1), queued_(peers) {}

  void queue_control(Rank peer) {
    if (mark(queued_[peer], kControl)) control_.push(peer);
  }
  void queue_data(Rank peer) {
    if (mark(flags_of(peer), kData)) data_.push(peer);
  }

  bool control_empty() const { return control_.empty(); }
  bool data_empty() const { return data_.empty(); }
  // Returns the next peer, which may be queued again from then on.
  std::optional<Rank> next_control() {
    if (control_.empty()) return std::nullopt;
    const Rank peer = control_.pop();
    queued_[peer] &= static_cast<std::uint8_t>(~kControl);
    return peer;
  }
  std::optional<Rank> next_data() {
    if (data_.empty()) return std::nullopt;
    const Rank peer = data_.pop();
    flags_of(peer) &= static_cast<std::uint8_t>(~kData);
    return peer;
  }

 private:
  static constexpr std::uint8_t kControl = 1;
  static constexpr std::uint8_t kData = 2;

  static bool mark(std::uint8_t& flags, std::uint8_t flag) {
    const bool fresh = (flags & flag) == 0;
    flags |= flag;
    return fresh;
  }
  std::uint8_t& flags_of(Rank peer) { return peer == kEveryRank ? group_queued_ : queued_[peer]; }

  RingQueue<Rank> control_;
  RingQueue<Rank> data_;
  std::vector<std::uint8_t> queued_;  // by peer: the queues that it waits in
  std::uint8_t group_queued_ = 0;
};

}  // namespace leeway::protocol
