// The thread that carries packets between the devices and the emulated network in real time.
//
// A pass delivers the packets that are due, then reads a batch from each device in turn until all
// are empty. If a pass found packets, the loop rests for a grain of time; otherwise it sleeps until
// a device has some or a packet is due. A train of any length costs one system call at either end,
// and no allocation.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <vector>

#include "namespaces.h"
#include "precision.h"
#include "train.h"
#include "wan.h"

namespace leeway::lab {

class PacketLoop : public PacketSink {
 public:
  // `devices` are the ranks' descriptors. Packets may be read and delivered up to `grain` (below 1
  // s) late. That saves wake-ups, which are most of a packet's cost.
  PacketLoop(const std::vector<int>& devices, Duration grain);

  // Runs until `control` has a byte or its other end is closed; returns true if there was a byte.
  // Takes a real-time priority if that is permitted.
  bool run(Wan& wan, int control);

  const Precision& precision() const { return precision_; }

  void deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool damaged) override;

 private:
  Instant now() const;
  void deliver_due(Wan& wan);
  void write_trains(std::uint32_t rank);
  // Packets found at a device: none; some, all of which were read; or more than a batch.
  enum class Found : std::uint8_t { nothing, some, more };
  Found take_batch(Wan& wan, std::uint32_t rank);
  Found take_all(Wan& wan);
  void rest(Duration time);
  void sleep(Instant until);

  Duration grain_;
  std::chrono::steady_clock::time_point start_;
  std::vector<pollfd> watched_;  // the devices, then the control descriptor
  std::vector<Instant> empty_;   // when each device was last known to have no packet
  std::array<std::byte, kDeviceBytesMax> buffer_{};
  std::vector<Trains> due_;  // for each device
  Precision precision_;
};

}  // namespace leeway::lab
