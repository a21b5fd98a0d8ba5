// One thread that carries packets between the devices and the network, as time goes by.
//
// A pass delivers the packets that are due, then takes packets from the devices in turns, a batch
// from each. If all are empty then, it rests for a grain of time; if they had nothing to begin
// with, it sleeps until one has something or a packet is due. A train costs one system call at
// either end, whatever it holds; nothing is allocated for it.
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
  // `devices` are the ranks' descriptors. Packets come in and go out up to a grain (below 1 s)
  // late, which spares wake-ups: most of what a packet costs.
  PacketLoop(const std::vector<int>& devices, Duration grain);

  // Runs until a byte can be read from `control`, or its other end is closed. Returns true if a
  // byte came. Runs ahead of all other work of the machine, if that is permitted.
  bool run(Wan& wan, int control);

  const Precision& precision() const { return precision_; }

  void deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool damaged) override;

 private:
  Instant now() const;
  // Writes the packets that are due to the devices.
  void deliver_due(Wan& wan);
  void write_trains(std::uint32_t rank);
  // What was found at a device: nothing; packets, all of which were taken; more than a batch.
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
