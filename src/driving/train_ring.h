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

  // Trains are prepared, or still being read: the memory that they refer to must not change.
  bool any_out() const { return released_ != prepared_; }
  // Of all trains that the node has handed out, how many are no longer read.
  std::uint64_t released() const { return released_; }

  // Lets the node prepare trains, and offers them to the transport. Whether it took one.
  bool send(Instant now, collective::Node& node, DatagramTransport& transport);

  // The transport is dead: nobody reads what was out.
  void drop_all() { taken_ = released_ = prepared_; }

 private:
  // Trains prepared at a time. While they are handed to the system, nothing is received: keep it
  // short.
  static constexpr std::size_t kPreparedMax = 4;
  // Trains prepared or still being read.
  static constexpr std::size_t kSlots = 16;

  void prepare(Instant now, collective::Node& node, DatagramTransport& transport);
  std::size_t slot_of(std::uint64_t train) const { return (train - first_) % kSlots; }

  // Slots that were never needed are null: a transport that copies needs kPreparedMax of them.
  std::vector<std::unique_ptr<protocol::TrainBuffer>> trains_;
  std::vector<Train> ready_;    // of the trains in trains_
  std::uint64_t prepared_ = 0;  // trains, ever
  std::uint64_t taken_ = 0;     // of these, by the transport
  std::uint64_t released_ = 0;  // of these, no longer borrowed by it
  std::uint64_t first_ = 0;     // which lies in slot 0
};

}  // namespace leeway::driving
