// The order of one communicator's operations, and the thread that hands their steps to the network.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "device/signal.h"
#include "device/transfer.h"

namespace leeway::device {

class Device;

// A step whose input is on its way to staging.
struct Pending {
  Site site;
  std::function<void(std::byte*, std::function<void()>)> run;
  std::shared_ptr<StepKernels> kernels;
};

// Of one communicator on one device. Steps begin in the order in which they were enqueued; those of
// graphs, in the order in which their streams got there.
class Lane {
 public:
  // `inputs`: a stream of its own, for copies into staging; an event of its own.
  Lane(Device& device, cuda::Stream inputs, cuda::Event captured)
      : device_(device), inputs_(inputs), captured_(captured) {}
  // Gives both back to the device. Makes no call of CUDA.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Device& device() const { return device_; }
  cuda::Stream inputs() const { return inputs_; }

 private:
  friend class Progress;
  friend class Enqueue;
  friend class Capture;

  Device& device_;
  const cuda::Stream inputs_;
  // Of Progress, by its mutex.
  std::deque<Pending> called_;
  std::deque<Pending> replayed_;
  bool listed_ = false;
  bool ended_ = false;
  // Of Enqueue, by the stager's mutex: enqueued, and perhaps not released.
  std::deque<Signal> in_flight_;
  // Of Capture: the last operation in the graph that is being captured.
  unsigned long captured_in_ = 0;
  const cuda::Event captured_;
};

// One thread: it looks whether streams wrote that an input is ready, and begins that step. It makes
// no call of CUDA. It sleeps while no lane has a step, and between looks, the longer the more of
// them were in vain.
class Progress {
 public:
  // Once; kResourceExhausted: no thread can be had. exit() ends it: what did not begin is dropped.
  Status start();
  void add(const std::shared_ptr<Lane>& lane, Pending step);
  // A graph's stream got to an operation. May be called by a host function: it never blocks.
  void add_replay(const std::shared_ptr<Lane>& lane, const std::vector<Pending>& steps);
  // All that did not begin is done now; so is what is added later.
  void end(Lane& lane);
  // Until all that was added by calls has begun.
  void wait_begun(const Lane& lane);

 private:
  void loop(const std::stop_token& stop);
  bool take_ready(std::vector<Pending>& out);
  // By who holds the mutex.
  void list(const std::shared_ptr<Lane>& lane);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable begun_;
  bool over_ = false;                         // the process is ending
  bool beginning_ = false;                    // steps that are in no lane any more
  std::vector<std::shared_ptr<Lane>> lanes_;  // with steps that did not begin
  Thread thread_;
};

}  // namespace leeway::device
