// Trains on their way out: prepared by the engine, taken by the transport, and then read by its
// device for as long as the transport borrows them. Touched by the driving thread only.
#pragma once

#include <memory>
#include <vector>

#include "collective/node.h"
#include "leeway/transport.h"

namespace leeway::driving {

class TrainRing {
 public:
  TrainRing() : trains_(kSlots), ready_(kSlots) {}

  // Returns true if trains are prepared, or are still being read. Meanwhile the memory to which
  // they refer must not change.
  bool any_out() const { return released_ != prepared_; }
  // Returns how many of the trains that the node has handed out are no longer read.
  std::uint64_t released() const { return released_; }

  // Lets the node prepare trains, and offers them to the transport. Returns true if it took one.
  bool send(Instant now, collective::Node& node, DatagramTransport& transport);

  // Forgets all trains, because the transport is dead and reads none any more.
  void drop_all() { taken_ = released_ = prepared_; }

 private:
  // Most trains prepared at a time. They are few, because nothing is received while they are handed
  // to the system.
  static constexpr std::size_t kPreparedMax = 4;
  // Most trains that are prepared or still being read.
  static constexpr std::size_t kSlots = 16;

  void prepare(Instant now, collective::Node& node, DatagramTransport& transport);
  std::size_t slot_of(std::uint64_t train) const { return (train - first_) % kSlots; }

  // A slot that was never needed is null. A transport that copies trains in send() never needs more
  // than kPreparedMax slots.
  std::vector<std::unique_ptr<protocol::TrainBuffer>> trains_;
  std::vector<Train> ready_;    // views of the trains in trains_
  std::uint64_t prepared_ = 0;  // trains, ever
  std::uint64_t taken_ = 0;     // trains that the transport took
  std::uint64_t released_ = 0;  // trains that it no longer borrows
  std::uint64_t first_ = 0;     // number of the train that lies in slot 0
};

}  // namespace leeway::driving
