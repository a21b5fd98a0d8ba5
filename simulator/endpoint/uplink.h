// A rank's sending socket. It makes the sender wait while the uplink's queue is full, because a
// host does not drop its own packets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "network/network.h"
#include "protocol/train_buffer.h"
#include "topology/topology.h"

namespace leeway::sim {

class Uplink {
 public:
  // Room for one train. More would only delay acknowledgements behind data. TCP small queues allow
  // about as much (a millisecond at 500 Mb/s).
  static constexpr std::uint64_t kRoomBytes = protocol::TrainBuffer::kTrainBytesMax;

  // Makes an uplink without limits, which is replaced once the rank is known.
  Uplink() = default;
  Uplink(const Topology& topology, std::uint32_t rank) : link_(topology.uplink(rank)) {
    if (link_ == kArrived) return;
    const QueueOptions& line = topology.properties(link_).queue;
    room_ = std::min<std::uint64_t>(kRoomBytes, line.max_bytes / 2);
    bits_per_second_ = std::max<std::uint64_t>(line.bits_per_second, 1);
  }

  // Returns true if the uplink takes a train now. A full uplink takes nothing until half of it is
  // sent, like Linux's sockets (sock_writeable), so that one wake-up lets the sender send many
  // packets.
  bool has_room(Instant now, Network& network) {
    if (now < writable_at_) return false;
    if (free_at(now, network) == now) return true;
    writable_at_ = drained_at(now, network, room_ / 2);
    return false;
  }
  // Returns when the uplink may have room again if nobody else uses the link. Valid after
  // has_room() returned false.
  Instant writable_at() const { return writable_at_; }

  // Returns when the bytes that wait in the uplink will fit its room, or `now` if they fit already.
  Instant free_at(Instant now, Network& network) const { return drained_at(now, network, room_); }

 private:
  Instant drained_at(Instant now, Network& network, std::uint64_t rest_bytes) const {
    constexpr std::uint64_t kBitNanosecondsPerByte = 8'000'000'000;
    if (link_ == kArrived) return now;
    const std::uint64_t waiting = network.waiting_bytes(now, link_);
    if (waiting <= rest_bytes) return now;
    const std::uint64_t excess = waiting - rest_bytes;
    return now +
           Duration(static_cast<std::int64_t>(excess * kBitNanosecondsPerByte / bits_per_second_) +
                    1);
  }

  LinkId link_ = kArrived;
  std::uint64_t room_ = 0;
  std::uint64_t bits_per_second_ = 1;
  Instant writable_at_{0};
};

}  // namespace leeway::sim
