// Operations on device memory: copies to pinned staging, the network, copies back, in the order of
// the user's streams. All of CUDA's work is enqueued inside the call; the network's part is done by
// other threads, which only read and write words of pinned memory. README.md says why no order of
// that can block.
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
  // Lives as long as the process: streams write to its memory.
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  const Driver& driver() const { return driver_; }

  // kUnavailable, kResourceExhausted: CUDA has no context, stream or memory for us.
  Result<std::shared_ptr<Lane>> open(int ordinal);

  // The transfers of one call or group begin together. Any thread; calls of one lane come one after
  // the other. Returns when all is enqueued, and waits for the network only where a lane has
  // kStepsInFlightMax steps under way, or where streams cannot wait for values. True: the streams
  // are being captured, and nothing begins before a graph is launched.
  //
  // kUnavailable: CUDA refused something, and the lanes are ended. kUnsupported: what cannot be
  // captured into a graph; nothing began.
  Result<bool> enqueue(std::span<const Transfer> transfers);

  // The lane's steps that did not begin are done, and so are all later ones: every stream that
  // waits for one goes on. Those that began are the network's to end.
  void end(Lane& lane) { progress_.end(lane); }
  // Waits until all steps that were enqueued have begun, or the lane was ended.
  void wait_begun(const Lane& lane) { progress_.wait_begun(lane); }

 private:
  friend class Enqueue;
  friend class Capture;

  const Driver& driver_;
  const std::size_t ring_bytes_;
  std::mutex mutex_;  // of calls: order on streams, rings, signals
  std::map<cuda::Context, std::unique_ptr<Device>> devices_;
  Progress progress_;
};

// Steps that one lane may have under way. Each takes up to six entries of the queues between driver
// and device, which have 1,024: the driver would wait for room while we hold the mutex. A step with
// kernels takes more, and counts for several.
inline constexpr std::size_t kStepsInFlightMax = 128;

}  // namespace leeway::device
