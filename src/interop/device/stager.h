// Operations on device memory: copies to pinned staging, the network, copies back, in the order of
// the user's streams. All of CUDA's work is enqueued inside the call. Other threads do the
// network's part. They call no function of CUDA, but read and write words of pinned memory, for
// which streams wait. README.md says why these waits cannot deadlock.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "device/device.h"
#include "device/lane.h"
#include "device/transfer.h"

namespace leeway::device {

class Stager {
 public:
  explicit Stager(const Driver& driver, std::size_t ring_bytes = Device::kRingBytes)
      : driver_(driver), ring_bytes_(ring_bytes) {}
  // Must live as long as the process, because streams write to its memory.
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  const Driver& driver() const { return driver_; }

  // Returns kUnavailable or kResourceExhausted if CUDA has no context, stream or memory for us.
  Result<std::shared_ptr<Lane>> open(int ordinal);

  // Enqueues the transfers of one call or group, which begin together. Any thread; calls for one
  // lane must come one after the other. The function returns when all is enqueued. It waits for the
  // network only if a lane has kStepsInFlightMax steps in flight, or if streams cannot wait for
  // values. The result is true if the streams are being captured: then nothing begins before a
  // graph is launched.
  //
  // kUnavailable: CUDA refused something, and the lanes are ended. kUnsupported: the call cannot be
  // captured into a graph, and nothing began.
  Result<bool> enqueue(std::span<const Transfer> transfers);

  // Drops the lane's steps that did not begin, and all later ones, so that streams that wait for
  // them go on. Steps that began end with their operations.
  void end(Lane& lane) { progress_.end(lane); }
  // Waits until all steps that were enqueued have begun, or the lane was ended.
  void wait_begun(const Lane& lane) { progress_.wait_begun(lane); }

 private:
  friend class Enqueue;
  friend class Capture;

  const Driver& driver_;
  const std::size_t ring_bytes_;
  std::mutex mutex_;  // protects calls: order on streams, rings, signals
  std::map<cuda::Context, std::unique_ptr<Device>> devices_;
  Progress progress_;
};

// Limit on the steps of one lane in flight. Each step takes up to six of the 1,024 entries of the
// queues between driver and device. With more steps, the driver would wait for room while we hold
// the mutex. A step with kernels takes more entries, and counts for several.
inline constexpr std::size_t kStepsInFlightMax = 128;

}  // namespace leeway::device
